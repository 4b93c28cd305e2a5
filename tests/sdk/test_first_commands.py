from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tensorkiln import Client, Graph
from tensorkiln.build import Builder
from tensorkiln.cli.compile_all.files import GraphFile
from tensorkiln.cli.compile_all.github import workflow_commands
from tensorkiln.cli.compile_all.result import Result
from tensorkiln.errors import InvalidGraphError, TensorkilnError
from tensorkiln.frontends.model import Model
from tensorkiln.target_names import NEWEST_CUDA, full_name, note
from tests.mistakes.tables import DOCUMENTS, SETUP
from tests.mistakes.test_mistakes import changed
from tests.report.test_report import data_of
from tests.sdk.conftest import Kiln, complaint, refusal, succeeded
from tests.wheels.own_model import write


def test_targets_are_listed_by_the_names_that_commands_take(kiln: Kiln) -> None:
    shown = succeeded(kiln("targets", "--json", "--url", ""))
    rows = {row["name"]: row for row in json.loads(shown)["targets"]}
    assert {"native", "cpu", "x86-64-v3", "aarch64", "cuda", "sm_90", NEWEST_CUDA} <= rows.keys()
    assert rows["native"]["here"] == "runs"
    assert NEWEST_CUDA in rows["cuda"]["stands_for"]
    assert all(row["compiles"] is None for row in rows.values())
    assert "x86-64-v4" in kiln("targets", "--url", "").stdout
    asked = kiln("targets", "--json")
    assert all(row["compiles"] for row in json.loads(asked.stdout)["targets"])


def test_names_of_targets_are_the_same_everywhere(kiln: Kiln, graph_file: Path) -> None:
    b = Builder("named")
    b.output(b.input("float32", (7, 11)) * 3.0)
    graph_file.write_text(b.graph().to_json())
    short = kiln("compile", graph_file.name, "-t", "x86-64-v3", "-t", "sm_90", "-o", "short.json")
    full = kiln("compile", graph_file.name, "-t", "cpu:x86-64-v3", "-t", "cuda:sm_90", "-o", "f.json")
    assert short.returncode == full.returncode == 0
    programs = [json.loads((graph_file.parent / name).read_text())["programs"] for name in ("short.json", "f.json")]
    assert [each["digest"] for each in programs[0]] == [each["digest"] for each in programs[1]]
    # Both are hits the second time, and a hit takes no time to compile.
    assert full.stdout.count("hit") == 2
    assert re.search(r"\d (ms|s)\b", short.stdout)
    assert not re.search(r"\d (ms|s)\b", full.stdout)


def test_cuda_is_the_newest_architecture_and_the_command_says_so(kiln: Kiln, graph_file: Path) -> None:
    done = kiln("compile", graph_file.name, "-t", "cuda")
    assert done.returncode == 0
    assert f"the target cuda is cuda:{NEWEST_CUDA}" in done.stderr
    assert full_name("cuda") == f"cuda:{NEWEST_CUDA}"
    assert note("cuda:sm_90") is None


def test_stages_are_dumped_by_the_suffix_of_their_language(kiln: Kiln, graph_file: Path) -> None:
    done = kiln("compile", graph_file.name, "-t", "cpu", "-t", "sm_90", "--dump-stages", "stages")
    assert done.returncode == 0
    files = {path.name.partition("-")[2]: path.read_text() for path in (graph_file.parent / "stages").glob("*/*")}
    assert {
        "from-graph.mlir",
        "to-linalg.mlir",
        "lower.mlir",
        "translate.ll",
        "codegen.s",
        "codegen.ptx",
    } <= files.keys()
    assert {Path(name).suffix for name in files} == {".mlir", ".ll", ".s", ".ptx", ".json"}
    assert ".globl" in files["codegen.s"]
    assert ".target sm_90" in files["codegen.ptx"]


def test_a_run_writes_its_profile(kiln: Kiln, graph_file: Path) -> None:
    asked = ("run", graph_file.name, "--random", "0", "-s", "n=4", "--repeat", "3")
    succeeded(kiln(*asked, "--profile", "x.json"))
    events = json.loads((graph_file.parent / "x.json").read_text())["traceEvents"]
    assert any(event["ph"] == "X" for event in events)
    succeeded(kiln(*asked, "--profile", "x.svg"))
    roofline = ElementTree.parse(graph_file.parent / "x.svg").getroot()
    assert roofline.tag == "{http://www.w3.org/2000/svg}svg"
    (title,) = (event["args"]["name"] for event in events if event["name"] == "process_name")
    kernels = {event["name"] for event in events if event["ph"] == "X" and event["args"].get("flops")}
    assert kernels
    assert {title, *kernels} <= set(roofline.itertext())
    assert "a profile is saved as .json" in complaint(kiln(*asked, "--profile", "x.html"), 2)


def test_bench_says_how_long_calls_take_and_what_they_use(kiln: Kiln, graph_file: Path) -> None:
    done = succeeded(kiln("bench", graph_file.name, "-s", "n=4", "--repeat", "4", "--threads", "1", "--json"))
    told = json.loads(done)
    assert told["machine"]["gb_per_s"] > 0
    for each in (told["call"], *told["items"]):
        assert 0 < each["least_ns"] <= each["median_ns"]
        assert each["gb_per_s"] == pytest.approx(each["bytes"] / each["median_ns"])
        assert each["of_machine"] > 0
    assert sum(each["flops"] for each in told["items"]) == told["call"]["flops"]


def test_explain_names_the_hit_of_a_compile(kiln: Kiln, graph_file: Path) -> None:
    b = Builder("explained")
    b.output(b.input("float32", (5, 13)) * 7.0)
    graph_file.write_text(b.graph().to_json())
    asked = ("explain", graph_file.name, "-t", "x86-64-v3")
    before = succeeded(kiln(*asked, "--out", "why.json"))
    (action,) = json.loads((graph_file.parent / "why.json").read_text())["actions"]
    assert re.search(rf"x86-64-v3 .* {action['digest'][:12]} .* no ", before)
    assert not action["stored"]
    compiled = kiln("compile", graph_file.name, "-t", "x86-64-v3", "-o", "programs.json")
    assert compiled.returncode == 0
    (program,) = json.loads((graph_file.parent / "programs.json").read_text())["programs"]
    assert program["digest"] == action["digest"]
    assert re.search(rf"{action['digest'][:12]} .* yes ", kiln(*asked).stdout)
    other = kiln(*asked, "--fast-math")
    assert re.search(r" no .* options.fast_math", other.stdout)


def test_a_graph_is_converted_and_comes_back(kiln: Kiln, graph_file: Path, layer: Graph) -> None:
    folder = graph_file.parent
    assert kiln("convert", graph_file.name, "-o", "model.kilnmodel").returncode == 0
    model = Model.load(folder / "model.kilnmodel")
    assert list(model.inputs) == ["input0", "input1"]
    back = kiln("convert", "model.kilnmodel", "-o", "back.json")
    assert back.returncode == 0
    assert Graph.model_validate_json((folder / "back.json").read_text()) == layer
    assert "to .json, its graph, or to .kilnmodel" in refusal(kiln("convert", graph_file.name, "-o", "model.txt"), 2)


def test_an_onnx_model_is_converted_to_its_graph(kiln: Kiln, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    write(tmp_path / "model.onnx")
    done = succeeded(kiln("convert", "model.onnx", "-o", "graph.json", "--dim", "rows=1:64", url=""))
    from tensorkiln.frontends import onnx

    graph = Graph.model_validate_json((tmp_path / "graph.json").read_text())
    assert graph == onnx.load(tmp_path / "model.onnx", symbols={"rows": (1, 64)}).graph
    assert [(each.name, each.min_val, each.max_val) for each in graph.symbolic_vars] == [("rows", 1, 64)]
    # The weights of two layers are inputs.
    assert len(graph.input_vars) == 3
    assert "2 parameters are inputs of it" in done


def test_parameters_that_a_graph_cannot_have_are_counted(kiln: Kiln, graph_file: Path, layer: Graph) -> None:
    first, second = layer.input_vars
    kind = layer.types[second]
    weights = np.ones([int(str(dim)) for dim in kind.shape], kind.dtype.numpy)
    Model(layer, {second: weights}, {"rows": first}, {"scores": layer.output_vars[0]}).save(
        graph_file.parent / "model.kilnmodel"
    )
    done = kiln("convert", "model.kilnmodel", "-o", "graph2.json")
    assert "1 parameters are inputs of it, and their values are not written" in done.stdout
    kiln("convert", "model.kilnmodel", "-o", "again.kilnmodel")
    assert list(Model.load(graph_file.parent / "again.kilnmodel").inputs) == ["rows"]


def test_a_refused_graph_has_one_annotation_for_all_targets(tmp_path: Path) -> None:
    file = GraphFile("model", tmp_path / "model.onnx")
    error = InvalidGraphError("it is none", pointers=["/nodes/1"])
    results = [Result(file, target, error=error) for target in ("cpu:x86-64-v3", "cuda:sm_90")]
    other = Result(file, "cuda:sm_80", error=InvalidGraphError("something else"))
    lines = list(workflow_commands([*results, other]))
    assert len(lines) == 2
    assert "title=graph.invalid for cpu%3Ax86-64-v3%2C cuda%3Asm_90::it is none" in lines[0]
    assert "title=graph.invalid for cuda%3Asm_80::something else" in lines[1]


def test_the_service_says_the_same_of_every_mistake_as_the_client(served: str, tmp_path: Path) -> None:
    # The client sends a document as it is.
    said: dict[str, str] = {}
    with Client(served, cache_dir=tmp_path) as client:
        for change in DOCUMENTS:
            with pytest.raises(TensorkilnError) as caught:
                client.validate(changed(change))
            said[change] = caught.value.message
    assert said == DOCUMENTS


def test_a_key_that_an_open_service_does_not_look_at_is_said(kiln: Kiln, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_API_KEY", "kiln_not_a_key")
    found = {each["part"]: each for each in json.loads(kiln("doctor", "--json").stdout)["findings"]}
    assert found["credential"]["status"] == "warn"
    assert found["credential"]["found"] == SETUP["KILN_API_KEY=kiln_not_a_key kiln doctor"]


def test_a_report_has_stages_graph_and_signature(kiln: Kiln, graph_file: Path, tmp_path: Path, layer: Graph) -> None:
    shown = succeeded(kiln("report", graph_file.name, "-t", "cpu:x86-64-v3", "-t", "cuda:sm_90", "-o", "page.html"))
    assert shown.startswith("page.html is the report")
    data = data_of((tmp_path / "page.html").read_text("utf-8"))
    assert data["this", "graph"] == json.loads(layer.to_json())
    assert data["this", "program"]["symbols"][0]["name"] == "n"
    assert "func.func @graph" in data["this", "stage:from-graph"]
    assert data["this", "signature"]["record"]["action"] == data["this", "program"]["digest"]
    assert any(".visible .entry" in text for (_, name), text in data.items() if name in ("stage:codegen", "stage:ptx"))


def test_kept_programs_are_reported(kiln: Kiln, graph_file: Path, tmp_path: Path, served: str, layer: Graph) -> None:
    with Client(served, cache_dir=tmp_path / "home") as client:
        (compiled,) = client.compile_for(layer, ["cpu:x86-64-v3"], {"dump_stages": True})
    url = f"{served}/programs/{compiled.digest}"
    assert kiln("report", url, url="").returncode == 0
    stored = data_of((tmp_path / f"{compiled.digest[:12]}.html").read_text("utf-8"))
    assert stored["this", "program"]["symbols"][0]["name"] == "s0"
    assert "stage:translate" in {name for _, name in stored}
    assert kiln("compile", graph_file.name, "-t", "cpu:x86-64-v3", "--bundle", "layer.kiln").returncode == 0
    assert kiln("report", "layer.kiln", "--against", f"{url}/report").returncode == 0
    carried = data_of((tmp_path / "layer.html").read_text("utf-8"))
    assert carried["this", "program"]["digest"] == carried["against", "program"]["digest"] == compiled.digest
    assert carried["this", "signature"] == carried["against", "signature"]


def test_programs_without_a_report_are_refused(kiln: Kiln, graph_file: Path) -> None:
    assert "the URL of a program" in kiln("report", "nothing.onnx").stderr
    three = [word for target in ("x86-64-v2", "x86-64-v3", "x86-64-v4") for word in ("-t", f"cpu:{target}")]
    refused = kiln("report", graph_file.name, *three)
    assert (refused.returncode, "compares two programs" in refused.stderr) == (2, True)
    refusal(kiln("report", f"http://127.0.0.1:1/programs/{'0' * 64}"), 3)
    url = f"http://127.0.0.1:1/programs/{'0' * 64}"
    assert "compiled already" in kiln("report", url, "--no-fusion").stderr
