from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, relu
from tensorkiln.errors import CallInputError, InvalidGraphError
from tensorkiln.frontends.model import CompiledModel, Model
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tests.compiled import compiled
from tests.compiled import program as program_of

ROWS, WEIGHTS = np.ones((4, 64), np.float32), np.full((64, 10), 0.5, np.float32)


@pytest.fixture(scope="module")
def graph() -> Graph:
    b = Builder("layer")
    x, w = b.input("float32", (b.symbol("n", 1, 4096), 64)), b.parameter("float32", (64, 10))
    b.output(relu(x @ w))
    return b.graph()


@pytest.fixture(scope="module")
def program(graph: Graph) -> Program:
    return program_of(compiled(graph))


# The name of a graph is no part of its program.


def html(shown: Any) -> str:
    """What a notebook shows."""
    return shown._repr_html_()


SIGNATURE = "program(input0: float32[n, 64], input1: float32[64, 10], *, n: 1..4096) -> (float32[n, 10])"


def test_a_program_says_what_it_is_called_with(graph: Graph, program: Program) -> None:
    assert str(program.signature) == SIGNATURE
    count = f"{len(program.kernels)} kernel"
    assert repr(program).startswith(f"<Program {SIGNATURE}, {count}")
    assert repr(program.compiled).startswith(f"<CompiledProgram {SIGNATURE}, {count}")
    assert repr(graph) == str(graph) == f"<Graph {SIGNATURE.replace('program', 'layer')}, {len(graph.nodes)} nodes>"


def test_its_inputs_and_outputs_have_names(program: Program) -> None:
    assert list(program.inputs) == ["input0", "input1"]
    assert program.inputs["input1"].kind == "float32[64, 10]"
    assert program.inputs["input1"].is_parameter
    assert [each.kind for each in program.outputs.values()] == ["float32[n, 10]"]


def test_inputs_are_bound_by_name(program: Program) -> None:
    bound = program.bind({"input1": WEIGHTS})
    assert list(bound.inputs) == ["input0"]
    assert str(bound.signature) == "program(input0: float32[n, 64], *, n: 1..4096) -> (float32[n, 10])"
    np.testing.assert_array_equal(bound(ROWS, n=4)[0], program(ROWS, WEIGHTS, n=4)[0])
    with pytest.raises(CallInputError, match="w is not a free input"):
        program.bind({"w": WEIGHTS})


@pytest.mark.parametrize("is_bound", [False, True])
def test_a_program_is_pickled_with_all_that_it_needs(program: Program, is_bound: bool, tmp_path: Path) -> None:
    sent = program.bind({"input1": WEIGHTS}) if is_bound else program
    given = (ROWS,) if is_bound else (ROWS, WEIGHTS)
    got = pickle.loads(pickle.dumps(sent))
    assert str(got.signature) == str(sent.signature)
    np.testing.assert_array_equal(got(*given, n=4)[0], sent(*given, n=4)[0])
    (tmp_path / "program").write_bytes(pickle.dumps((sent, given)))
    code = "import pickle; p, a = pickle.load(open('program', 'rb')); print(p(*a, n=4)[0].sum())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(done.stdout) == 4 * 10 * 32


def test_a_model_shows_its_own_names(graph: Graph, program: Program) -> None:
    model = Model(
        graph, {graph.input_vars[1]: WEIGHTS}, {"rows": graph.input_vars[0]}, {"scores": graph.output_vars[0]}
    )
    signature = "layer(rows: float32[n, 64], *, n: 1..4096) -> (float32[n, 10])"
    assert repr(model) == f"<Model {signature}, 1 parameters of 2.56 kB>"
    bound = CompiledModel(program.bind(model.parameters), ("rows",), ("scores",), model.symbols())
    assert repr(bound).startswith(f"<CompiledModel {signature.replace('layer', 'program')}, ")
    assert bound.signature.outputs[0].name == "scores"
    assert "rows" in html(bound)


def test_kernels_and_schedules_show_themselves(program: Program) -> None:
    kernel, schedule = program.kernels[0], program.compiled.schedule
    assert repr(kernel).startswith(f"<Kernel {kernel.name}: {kernel.buf_count} buffers, grid ")
    assert repr(schedule).startswith(f"<Schedule of {len(schedule.items)} item")
    assert kernel.name in html(kernel)
    assert kernel.name in html(schedule)
    assert program.compiled.digest[:12] in html(program)


def test_a_graph_shows_its_nodes(graph: Graph) -> None:
    shown = html(graph)
    assert "reduce_axis" in shown
    assert "float32[n, 10]" in shown


def test_html_for_notebooks_is_escaped(program: Program) -> None:
    evil = "<script>alert(1)</script>"
    spec = program.kernels[0].model_copy(update={"name": evil})
    record = program.compiled.model_copy(update={"name": evil, "kernels": (spec,)})
    error = InvalidGraphError(evil, pointers=[f"/{evil}"], details={evil: evil})
    for shown in (html(spec), html(record), html(error)):
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown


def test_many_rows_are_cut() -> None:
    b = Builder("long")
    x = b.input("float32", (4,))
    for _ in range(300):
        x = x + x
    b.output(x)
    shown = html(b.graph())
    assert shown.count("<tr>") < 150
    assert "201 more" in shown
