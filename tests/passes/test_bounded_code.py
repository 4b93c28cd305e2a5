"""The code of a kernel is bounded, however often its ops read an operand and however much an index would grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dialect.mlir import ir
from passes.fuse import materialise
from passes.fuse.materialise import MAX_INDEX, MAX_SIZE
from passes.loops.scalar_dag import indices, walk
from tensorkiln.build import Builder, cat, pad, shrink
from tensorkiln.expr import Dim
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import compiled, emulated
from tests.dialect.wire import assign, binop, buffer, buffer_view, graph_of, inputs_of, placeholder
from tests.passes.modules import after, bodies, output, shape_of_kernels

TARGETS = ("cpu:x86-64-v3", "cuda:sm_90")


@pytest.fixture(params=[compiled.run, emulated.run], ids=["cpu", "gpu"])
def run(request: pytest.FixtureRequest) -> Callable[..., tuple[Any, ...]]:
    """What compiles a graph and runs it, on this machine or on an emulated GPU."""
    return request.param


def scalar_counts(graph: Graph) -> list[int]:
    """The scalar nodes of every stage."""
    return [len(list(walk(stage.elements, body.nodes))) for body in bodies(graph) for stage in body.stages]


def longest_index(graph: Graph) -> int:
    """How often loop indices stand in the longest index of any kernel."""
    symbols = {symbol.name for symbol in graph.symbolic_vars}
    found = [
        _occurrences(dim, symbols)
        for body in bodies(graph)
        for stage in body.stages
        for node in walk(stage.elements, body.nodes)
        for dim in indices(node)
    ]
    return max(found)


def _occurrences(dim: Dim, symbols: set[str]) -> int:
    if isinstance(dim, int):
        return 0
    atoms = [atom for monomial, _ in dim.terms for atom in monomial]
    return sum(
        atom.key not in symbols if atom.op == "symbol" else sum(_occurrences(arg, symbols) for arg in atom.args)
        for atom in atoms
    )


def op_count(graph: Graph, target: str) -> int:
    """The ops of the graph in linalg."""
    count = 0

    def visit(_: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE

    after("realise", graph, target).operation.walk(visit)
    return count


def assigned_through_a_view(times: int, base: str = "int64", other: str = "int32", size: Any = 256) -> Graph:
    """A copy of an input, to whose first two elements as another dtype something is added that many times."""
    nodes = [
        placeholder(0, [size], base),
        placeholder(1, [2], other),
        buffer(2, size, base),
        assign(3, 2, (0, None), dtype=base),
        buffer_view(4, 2, 0, 2, other),
    ]
    for var in range(5, 5 + 2 * times, 2):
        nodes += [binop(var, 4, 1, dtype=other), assign(var + 1, 4, (var, None), dtype=other)]
    return graph_of(nodes, [2, 4], bounds={} if isinstance(size, int) else {size: (2, 64)})


def reshuffled(times: int) -> Graph:
    """Transposed and read in the old shape again, that many times."""
    b = Builder("reshuffled")
    x = b.input("int32", (35, 49))
    for _ in range(times):
        x = x.permute(1, 0).reshape(35, 49)
    return output(b, x)


def reshuffled_symbolic(times: int) -> Graph:
    """Transposed and read in the old shape again, that many times, of any size."""
    b = Builder("reshuffled")
    n, m = b.symbol("n", 1, 50), b.symbol("m", 1, 50)
    x = b.input("int32", (n, m))
    for _ in range(times):
        x = x.permute(1, 0).reshape(n, m)
    return output(b, x)


def framed(times: int) -> Graph:
    """Framed with zeros, transposed and read in the old shape again, cut to the old size, that many times."""
    b = Builder("framed")
    x = b.input("int32", (35, 49))
    for _ in range(times):
        x = shrink(pad(x, [(1, 0), (0, 1)]).permute(1, 0).reshape(36, 50), [(0, 35), (1, 50)])
    return output(b, x)


def doubled(times: int) -> Graph:
    """Joined to itself, that many times."""
    b = Builder("doubled")
    x = b.input("int32", (2,))
    for _ in range(times):
        x = cat([x, x], 0)
    return output(b, x)


@pytest.mark.parametrize("times", [3, 6])
@pytest.mark.parametrize(("base", "other"), [("int64", "int32"), ("int32", "float32"), ("int64", "uint8")])
@pytest.mark.parametrize("size", [256, "n"])
def test_an_assignment_through_a_view_of_another_dtype_adds_as_much_code_each_time(
    base: str, other: str, size: Any, times: int
) -> None:
    counts = scalar_counts(assigned_through_a_view(times, base, other, size))
    assert max(counts) <= MAX_SIZE
    assert sum(counts) <= MAX_SIZE * times


@pytest.mark.parametrize("make", [reshuffled, reshuffled_symbolic, framed])
def test_an_index_is_stored_before_it_has_grown_too_long(make: Callable[[int], Graph]) -> None:
    axes = 2
    assert longest_index(make(12)) <= axes * 2 * MAX_INDEX


def test_an_operand_that_is_joined_to_itself_counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    choices_and_loads = 2
    counts = scalar_counts(doubled(10))
    assert len(counts) > 1
    assert max(counts) <= choices_and_loads * 2 * MAX_SIZE
    # As much code as may be takes nine seconds to compile: a quarter of it is stored in the same way.
    monkeypatch.setattr(materialise, "MAX_SIZE", MAX_SIZE // 4)
    graph = doubled(8)
    counts = scalar_counts(graph)
    assert len(counts) > 1
    assert max(counts) <= choices_and_loads * 2 * MAX_SIZE // 4
    arrays = inputs_of(graph, {})
    np.testing.assert_array_equal(compiled.run(graph, *arrays)[0], evaluate(graph, *arrays)[0])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("make", [assigned_through_a_view, reshuffled, reshuffled_symbolic, framed, doubled])
def test_code_grows_with_the_number_of_nodes(make: Callable[[int], Graph], target: str) -> None:
    shorter, longer = (op_count(make(times), target) for times in (12, 16))
    assert longer <= 2 * shorter


@pytest.mark.parametrize("make", [reshuffled, reshuffled_symbolic, framed])
def test_a_few_reshapes_that_split_are_looked_through(make: Callable[[int], Graph]) -> None:
    assert [len(roots) for _, roots in shape_of_kernels(make(4))] == [1]


def test_reshapes_that_split_different_axes_do_not_multiply() -> None:
    b = Builder("axes")
    n = b.symbol("n", 1, 8)
    x = b.input("float32", (n, 3, 5, 7, 2, 11))
    joined = x.permute(1, 0, 3, 2, 5, 4).reshape(3 * n, 35, 22)
    assert [len(roots) for _, roots in shape_of_kernels(output(b, -joined))] == [1]


@pytest.mark.parametrize(
    ("graph", "symbols"),
    [
        (assigned_through_a_view(4), {}),
        (assigned_through_a_view(3, "int32", "uint8"), {}),
        (assigned_through_a_view(3, size="n"), {"n": 5}),
        (reshuffled(17), {}),
        (reshuffled_symbolic(17), {"n": 7, "m": 5}),
        (framed(9), {}),
    ],
    ids=["assigned", "bytes", "assigned_symbolic", "reshuffled", "reshuffled_symbolic", "framed"],
)
def test_values_stored_to_bound_the_code_keep_their_numbers(
    run: Callable[..., tuple[Any, ...]], graph: Graph, symbols: dict[str, int]
) -> None:
    arrays = inputs_of(graph, symbols)
    expected = evaluate(graph, *arrays, **symbols)
    for actual, wanted in zip(run(graph, *arrays, **symbols), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)
