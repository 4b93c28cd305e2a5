"""What a stage leaves as text: read back, continued from, and run by name from the command line."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from dialect.kiln import new_context
from dialect.mlir import ir
from passes import stage_text
from passes.__main__ import main
from passes.back_ends import back_end_of
from tensorkiln.build import Builder, relu, softmax
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tests.filecheck import check_ir
from tests.passes.modules import TARGET, kiln, output

TARGETS = [TARGET, "cuda:sm_90"]


def layer() -> Graph:
    """A product with a bias and a relu behind it, and a softmax of that; its rows are symbolic."""
    b = Builder("layer")
    x, w, bias = (
        b.input("float32", (b.symbol("s0", 1, 64), 16)),
        b.input("float32", (16, 32)),
        b.input("float32", (32,)),
    )
    return output(b, softmax(relu(x @ w + bias)))


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "graph.json"
    path.write_text(layer().model_dump_json(), "utf-8")
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@pytest.mark.parametrize("target", TARGETS)
def test_a_module_reads_back_as_it_was_after_every_stage(target: str) -> None:
    module = kiln(layer())
    for stage in back_end_of(Target.parse(target), CompileOptions()).pipeline:
        module = stage.run(module)
        text = stage_text.write(module, stage.name, locations=True)
        again, name = stage_text.read(text, new_context())
        assert name == stage.name
        assert again.operation.get_asm(enable_debug_info=True) == module.operation.get_asm(enable_debug_info=True)
        assert stage_text.STAGE not in module.operation.attributes


@pytest.mark.parametrize("target", TARGETS)
def test_a_module_continues_from_the_text_of_any_stage(
    target: str, graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = printed(capsys, graph, "--target", target)
    names = [stage.name for stage in back_end_of(Target.parse(target), CompileOptions()).pipeline]
    for name in ("from-graph", *names):
        path = tmp_path / f"{name}.mlir"
        path.write_text(printed(capsys, graph, "--target", target, "--until", name, "--locations"), "utf-8")
        assert printed(capsys, "--from", str(path), "--target", target) == whole, name


def test_stages_can_be_left_out_and_named_alone(
    graph: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(printed(capsys, graph, "--until", "from-graph")))
    alone = printed(capsys, "--from", "-", "--only", "form-kernels")
    check_ir(
        alone,
        """
        // CHECK: module attributes {kiln.stage = "form-kernels"
        // CHECK: func.func @graph
        // CHECK: func.func private @kernel_0
        // CHECK: "kiln.reduce_axis"
        """,
    )


def test_a_graph_without_fusion_has_a_kernel_for_each_op(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    fused, apart = (printed(capsys, graph, "--until", "form-kernels", *option) for option in ((), ("--no-fusion",)))
    assert apart.count("func.func private") > fused.count("func.func private")


def test_locations_name_the_nodes(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert '"/nodes/0"' not in printed(capsys, graph, "--until", "from-graph")
    assert '"/nodes/0"' in printed(capsys, graph, "--until", "from-graph", "--locations")


def test_a_stage_that_there_is_not_is_refused(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, graph, "--until", "fuse").startswith("There is no stage 'fuse'; there are from-graph, dec")
    assert "no stage 'translate' to run" in refused(capsys, graph, "--only", "translate")


def test_a_module_behind_the_last_stage_is_refused(
    graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scheduled.mlir"
    path.write_text(printed(capsys, graph, "--until", "schedule"), "utf-8")
    said = refused(capsys, "--from", str(path), "--until", "decompose")
    assert said == "The module is that of schedule, behind decompose.\n"


def test_a_module_of_no_stage_continues_with_named_stages_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plain.mlir"
    path.write_text(str(kiln(layer())), "utf-8")
    assert "name stages with --only" in refused(capsys, "--from", str(path))
    assert "kiln.multi" not in printed(capsys, "--from", str(path), "--only", "decompose")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("module {", ":1:7: expected"),
        ('\n"kiln.unary"() {op = "neg"} : () -> ()', ":2:1: op expects exactly 1 operand"),
        ("func.func @f", "expected"),
    ],
)
def test_text_that_is_no_module_is_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(text, "utf-8")
    assert said in refused(capsys, "--from", str(path), "--only", "decompose")


def test_a_graph_that_breaks_the_contract_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"schema": 1}', "utf-8")
    assert "nodes" in refused(capsys, str(path))
    assert "no-such-file" in refused(capsys, str(tmp_path / "no-such-file.json"))


def test_a_module_of_another_dialect_is_refused_by_the_parser() -> None:
    with pytest.raises(ir.MLIRError, match="unregistered dialect"):
        stage_text.read('"no.such"() : () -> ()', new_context())
