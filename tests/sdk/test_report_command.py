from __future__ import annotations

import json
from pathlib import Path

from tensorkiln import Client, Graph
from tests.report.test_report import data_of
from tests.sdk.conftest import Kiln, refusal, succeeded


def test_a_model_is_reported_with_its_stages_graph_and_signature(
    kiln: Kiln, graph_file: Path, tmp_path: Path, layer: Graph
) -> None:
    shown = succeeded(kiln("report", graph_file.name, "-t", "cpu:x86-64-v3", "-t", "cuda:sm_90", "-o", "page.html"))
    assert shown.startswith("page.html is the report")
    data = data_of((tmp_path / "page.html").read_text("utf-8"))
    assert data["this", "graph"] == json.loads(layer.to_json())
    assert data["this", "program"]["symbols"][0]["name"] == "n"
    assert "func.func @graph" in data["this", "stage:from-graph"]
    assert data["this", "signature"]["record"]["action"] == data["this", "program"]["digest"]
    assert any(".visible .entry" in text for (_, name), text in data.items() if name in ("stage:codegen", "stage:ptx"))


def test_a_stored_program_and_a_bundle_are_reported(
    kiln: Kiln, graph_file: Path, tmp_path: Path, served: str, layer: Graph
) -> None:
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
