from __future__ import annotations

import base64
import gzip
import hashlib
import json
import pickle
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from passes.codegen import nvjitlink
from passes.compile import CompileRequest, compile_request
from tensorkiln.build import Builder
from tensorkiln.errors import InvalidGraphError, RequestError
from tensorkiln.options import CompileOptions
from tensorkiln.program import Program
from tensorkiln.report import Report
from tensorkiln.report.page import content_security_policy, page
from tensorkiln.report.sass import disassembler
from tensorkiln.runtime.profile import ItemProfile
from tensorkiln.target import Target
from tensorkiln.trust.carried import write_signed
from tensorkiln.trust.record import SignedRecord
from tests.report.programs import HOSTILE, compiled_layer, hostile, layer, long_chain, report_of_layer

ELEMENT = re.compile(
    r'<script type="application/json" data-side="(\w+)" data-part="([^"]*)"([^>]*)>(.*?)</script>', re.S
)


def data_of(html: str) -> dict[tuple[str, str], Any]:
    """The data in a page by side and part, read as a browser does."""
    found: dict[tuple[str, str], Any] = {}
    for side, name, attributes, text in ELEMENT.findall(html):
        content = gzip.decompress(base64.b64decode(text)) if "gzip" in attributes else text
        found[side, unescape(name)] = json.loads(content)
    return found


def test_a_page_has_the_program_its_graph_and_every_stage() -> None:
    made = compiled_layer()
    data = data_of(report_of_layer().html())
    assert data["this", "program"] == made.program.model_dump(mode="json")
    assert data["this", "graph"] == json.loads(layer().to_json())
    assert {name.removeprefix("stage:") for _, name in data if name.startswith("stage:")} == set(made.dumps)
    assert data["this", "stage:translate"] == made.dumps["translate"]


def test_the_names_lead_from_a_stage_to_the_nodes_of_the_user() -> None:
    b = Builder("reordered")
    x = b.input("float32", (4,))
    unused = x * 2.0
    y = x + 1.0
    assert unused.var != y.var
    b.output(y)
    graph = b.graph()
    # The canonical graph has no dead nodes: its last one is the addition.
    from tests.compiled import compiled

    names = data_of(Report.of(compiled(graph, "cpu:x86-64-v3").program, graph=graph).html())["this", "names"]
    assert graph.nodes[names["nodes"][-1]].node == "binop"
    assert len(names["nodes"]) < len(graph.nodes)


def test_the_code_of_a_gpu_is_a_text_of_the_page() -> None:
    made = compiled_layer("cuda:sm_90")
    data = data_of(Report.of(made.program, artifacts=made.artifacts).html())
    assert ".visible .entry kernel_0(" in data["this", "stage:ptx"]
    # Not a second time, where it is the text of a stage.
    staged = data_of(Report.of(made.program, stages={"codegen": "ret;"}, artifacts=made.artifacts).html())
    assert ("this", "stage:ptx") not in staged


def test_a_page_against_another_program_has_both() -> None:
    data = data_of(report_of_layer().html(against=report_of_layer("cuda:sm_90")))
    assert data["this", "program"]["target"]["kind"] == "cpu"
    assert data["against", "program"]["target"]["kind"] == "cuda"


def test_hostile_text_in_any_field_stays_inside_of_its_element() -> None:
    parts = {name: json.dumps(hostile(json.loads(part))).encode() for name, part in report_of_layer().parts.items()}
    parts[f"stage:{HOSTILE}"] = json.dumps(HOSTILE).encode()
    html = page(parts).decode()
    data = data_of(html)
    assert data["this", f"stage:{HOSTILE}"] == HOSTILE
    assert data["this", "program"]["name"] == HOSTILE
    assert "<img" not in html
    assert not any("\u2028" in text for *_, text in ELEMENT.findall(html))
    assert html.count("</script>") == page({}).decode().count("</script>") + len(parts)


def test_the_same_program_is_the_same_page() -> None:
    assert report_of_layer().html() == report_of_layer().html()


def test_ten_thousand_nodes_take_less_than_two_megabytes() -> None:
    assert len(page(long_chain(2500, 4))) < 2_000_000


def test_the_graph_of_another_program_is_refused() -> None:
    b = Builder("other")
    x = b.input("float32", (4,))
    b.output(x * 2.0)
    with pytest.raises(RequestError, match="not compiled from this graph"):
        Report.of(compiled_layer().program, graph=b.graph())
    with pytest.raises(InvalidGraphError):
        Report.of(compiled_layer().program, graph="{}")


def test_a_profile_is_that_of_the_program() -> None:
    taken = ItemProfile(1, "kernel", "kernel_1", 1234, None, 2)
    program = compiled_layer().program
    data = data_of(Report.of(program, profile=[taken], sizes={"n": 4, "m": 5}).html())
    assert data["this", "profile"] == {"sizes": {"n": 4}, "items": [{"item_id": 1, "ns": 1234, "threads": 2}]}
    with pytest.raises(RequestError, match="another program"):
        Report.of(program, profile=[ItemProfile(2, "kernel", "kernel_2", 1, None, 1)], sizes={"n": 4})
    with pytest.raises(RequestError, match="give that of n"):
        Report.of(program, profile=[taken])
    with pytest.raises(RequestError, match="its n is 5000, not 1 to 4096"):
        Report.of(program, profile=[taken], sizes={"n": 5000})


def test_a_program_saves_its_report(tmp_path: Path) -> None:
    made = compiled_layer("cpu:native")
    program = Program(made.program, made.artifacts.__getitem__)
    report = program.report(tmp_path / "layer.html", graph=layer())
    assert (tmp_path / "layer.html").read_text("utf-8") == report.html()
    assert data_of(report.html())["this", "program"]["name"] == made.program.name


def test_a_program_reports_the_signature_and_the_code_that_it_came_with(tmp_path: Path) -> None:
    made = compiled_layer("cuda:sm_90")
    digest = "ab" * 32
    compiled = made.program.model_copy(update={"digest": digest})
    request = {"abi": 1, "graph": digest, "options": {}, "schema": 1, "target": {}}
    record = {"action": digest, "request": request, "program": digest, "artifacts": (), "stages": {}, "build_id": "b"}
    more = {"isolation": "full", "worker": "w", "key": "k" * 43, "issued_at": 1}
    signed = SignedRecord.model_validate({"record": record | more, "signature": "s" * 86})
    path = tmp_path / "layer.kiln"
    write_signed(path, compiled, made.artifacts.__getitem__, compiled.model_dump_json().encode(), signed)
    program = Program.from_bundle(path)
    for each in (program, pickle.loads(pickle.dumps(program))):
        parts = each.report(graph=layer()).parts
        assert parts["signature"] == signed.to_json()
        assert ".visible .entry kernel_0(" in json.loads(parts["stage:ptx"])
    # The signature of another program is not shown as that of this one.
    other = compiled.model_copy(update={"digest": "cd" * 32})
    write_signed(path, other, made.artifacts.__getitem__, other.model_dump_json().encode(), signed)
    assert "signature" not in Program.from_bundle(path).report().parts


def test_a_notebook_shows_a_page_in_a_frame_of_its_own() -> None:
    shown = report_of_layer()._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert 'sandbox="allow-scripts"' in shown
    framed = re.search(r'srcdoc="([^"]*)"', shown)
    assert framed is not None
    assert unescape(framed[1]) == report_of_layer().html()


def test_the_policy_of_the_page_allows_its_own_script_and_style_and_nothing_else() -> None:
    html = report_of_layer().html()
    policy = content_security_policy()
    assert policy in unescape(html)
    assert policy.startswith("default-src 'none';")
    for element in ("script", "style"):
        attributes = r'(?: type="module"| rel="stylesheet"| crossorigin)*'
        (own,) = re.findall(f"<{element}{attributes}>(.*?)</{element}>", html, re.S)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}';" in policy


def test_cubins_are_shown_as_machine_code_where_there_is_a_disassembler() -> None:
    made = compiled_layer()
    kernels = [kernel.model_copy(update={"binary": "0" * 64}) for kernel in made.program.kernels]
    program = made.program.model_copy(update={"kernels": tuple(kernels)})
    broken = data_of(Report.of(program, artifacts={"0" * 64: b"no cubin"}).html())
    if disassembler() is None:
        assert ("this", "stage:sass") not in broken
        pytest.skip("nvdisasm is not installed; the extra sass has it")
    assert broken["this", "stage:sass"] == "// nvdisasm failed: CalledProcessError"
    if nvjitlink.version() is None:
        pytest.skip("nvidia-nvjitlink is not installed; the extra cubin has it")
    assembled = compile_request(CompileRequest(layer(), Target.parse("cuda:sm_90"), CompileOptions(cubin=True)))
    text = data_of(Report.of(assembled.program, artifacts=assembled.artifacts).html())["this", "stage:sass"]
    assert "EXIT" in text
    assert all(kernel.entry in text for kernel in assembled.program.kernels)
