"""Scatters that combine, alone and in networks on graphs: every bit as the reference has it, and no access outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from passes.cpu import scatter as cpu_scatter
from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, matmul, maximum, ones, relu, scatter, take
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.graph import Graph
from tensorkiln.nodes import ScatterKind
from tensorkiln.reference import evaluate
from tensorkiln.schedule import KernelItem
from tests import checked, emulated
from tests.compiled import proven, runs_here
from tests.numerics.cases.turns import EXAMPLES

ISAS = ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4")
KINDS = tuple(ScatterKind)
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int32", "uint64", "bool")
ROWS: tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...] = (
    ((9, 37), (20, 37), 0),
    ((9, 37), (20, 33), 0),
    ((2, 9, 140), (2, 20, 140), 1),
    ((9, 3, 40), (20, 3, 40), 0),
    ((9, 3, 40), (20, 2, 40), 0),
)
"""Shapes of the result and of the updates, and the axis: the last axes have one index for all elements."""


def drawn(rng: np.random.Generator, dtype: DType, shape: Sequence[int]) -> np.ndarray:
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    return rng.integers(0, 2 if dtype.is_bool else 100, shape).astype(dtype.numpy)


def arrays_for(graph: Graph, extent: int, **symbols: int) -> list[np.ndarray]:
    """Indices around 0 to `extent`, of which many are equal and some out of range, and values."""
    rng = np.random.default_rng(7)
    found: list[np.ndarray] = []
    for var in graph.input_vars:
        kind = graph.types[var]
        shape = [expr.evaluate(dim, symbols) for dim in kind.shape]
        is_index = kind.dtype is DType.INT64
        found.append(rng.integers(-2, extent + 2, shape) if is_index else drawn(rng, kind.dtype, shape))
    return found


def rows_graph(kind: str, dtype: str, case: int, *, with_init: bool) -> tuple[Graph, int]:
    shape, updates, axis = ROWS[case]
    b = Builder("rows")
    index = b.input("int64", [size if place <= axis else 1 for place, size in enumerate(updates)])
    given = b.input(dtype, updates)
    init = b.input(dtype, shape) if with_init else None
    b.output(scatter(index.expand(updates), given, axis, shape, into=init, reduction=kind))
    return b.graph(), shape[axis]


def check_here(graph: Graph, extent: int, isa: str, **symbols: int) -> None:
    made = proven(graph, isa)
    if not runs_here(isa):
        pytest.skip(f"this processor lacks instructions of {isa}")
    arrays = arrays_for(graph, extent, **symbols)
    for found, expected in zip(
        checked.run(made, *arrays, threads=2, **symbols), evaluate(graph, *arrays, **symbols), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def by_turns(cases: Sequence[int], share: int, kind: str, dtype: str) -> Sequence[int]:
    """One in `share` of the cases, or all with KILN_EXAMPLES: each meets each kind, and each dtype."""
    turn = KINDS.index(ScatterKind(kind)) + DTYPES.index(dtype)
    return cases if EXAMPLES > 1 else [case for place, case in enumerate(cases) if (place + turn) % share == 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_updates_combine_in_order(kind: str, dtype: str) -> None:
    for case in by_turns(range(len(ROWS)), 3, kind, dtype):
        graph, extent = rows_graph(kind, dtype, case, with_init=case % 2 == 0)
        check_here(graph, extent, ISAS[(case + KINDS.index(ScatterKind(kind))) % 2])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", range(len(ROWS)))
def test_rows_are_added_on_every_level(case: int, isa: str) -> None:
    graph, extent = rows_graph("add", "float32", case, with_init=True)
    check_here(graph, extent, isa)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_combines_in_order(kind: str, dtype: str) -> None:
    for case in by_turns((1, 4), 2, kind, dtype):
        graph, extent = rows_graph(kind, dtype, case, with_init=case == 1)
        arrays = arrays_for(graph, extent)
        (found,) = emulated.run(graph, *arrays)
        np.testing.assert_array_equal(found, evaluate(graph, *arrays)[0])


def test_a_gpu_shares_the_elements_of_a_long_line_among_work_groups() -> None:
    b = Builder("line")
    b.output(scatter(b.input("int64", (300,)), b.input("float32", (300,)), 0, (2000,), reduction="add"))
    arrays = arrays_for(b.graph(), 2000)
    (found,) = emulated.run(b.graph(), *arrays)
    np.testing.assert_array_equal(found, evaluate(b.graph(), *arrays)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_work_groups_share_the_places_of_few_lines(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_scatter, "PART_POINTS", 64)
    b = Builder("parts")
    n, e = b.symbol("n", 1, 60), b.symbol("e", 0, 300)
    for f in (16, 37):
        index, given, x = b.input("int64", (e, 1)), b.input("float32", (e, f)), b.input("float32", (n, f))
        b.output(scatter(index.expand(e, f), given, 0, into=x, reduction=kind))
    graph = b.graph()
    items = [each.operation for each in proven(graph).program.schedule.items]
    extents = [{axis.name: axis.extent for axis in item.iter.axes} for item in items if isinstance(item, KernelItem)]
    assert [found["part"] for found in extents if "part" in found] == [4, 4]
    for nodes, edges in ((1, 9), (3, 300), (60, 200), (7, 0)):
        check_here(graph, nodes, "cpu:x86-64-v3", n=nodes, e=edges)


SIZES = ({"n": 1, "e": 1, "f": 1}, {"n": 30, "e": 200, "f": 17}, {"n": 7, "e": 40, "f": 130})


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes_may_be_symbolic(sizes: dict[str, int]) -> None:
    b = Builder("symbolic")
    n, e, f = (b.symbol(name, 1, 300) for name in ("n", "e", "f"))
    index, given, x = b.input("int64", (e, 1)), b.input("float32", (e, f)), b.input("float32", (n, f))
    b.output(*(scatter(index.expand(e, f), given, 0, into=x, reduction=kind) for kind in ("add", "max")))
    check_here(b.graph(), sizes["n"], "cpu:x86-64-v3", **sizes)


def test_no_updates_leave_the_initial_values() -> None:
    b = Builder("none")
    e = b.symbol("e", 0, 9)
    index, given, x = b.input("int64", (e, 1)), b.input("float32", (e, 8)), b.input("float32", (5, 8))
    b.output(scatter(index.expand(e, 8), given, 0, into=x, reduction="add"))
    for edges in (0, 3):
        check_here(b.graph(), 5, "cpu:x86-64-v3", e=edges)


def layer(x: Tensor, source: Tensor, target: Tensor, weights: Tensor, nodes: Dim) -> Tensor:
    """The mean over a node's neighbours of what a perceptron makes of each."""
    messages = relu(matmul(take(x, source), weights))
    places = target.unsqueeze(1)
    width = messages.shape[1]
    total = scatter(places.expand(messages.shape), messages, 0, (nodes, width), reduction="add")
    counts = scatter(target, ones(x.builder, target.shape), 0, (nodes,), reduction="add")
    return total / maximum(counts, 1.0).unsqueeze(1)


@pytest.mark.parametrize("isa", ISAS[1:])
@pytest.mark.parametrize("nodes", [20, "n"])
def test_a_network_on_a_graph_of_two_layers(nodes: int | str, isa: str) -> None:
    b = Builder("gnn")
    n = b.symbol("n", 1, 50) if nodes == "n" else 20
    e = b.symbol("e", 1, 500)
    x, source, target = b.input("float32", (n, 16)), b.input("int64", (e,)), b.input("int64", (e,))
    first, second = b.input("float32", (16, 24)), b.input("float32", (24, 10))
    hidden = layer(x, source, target, first, n)
    b.output(layer(hidden, source, target, second, n))
    graph = b.graph()
    symbols = {"e": 90, **({"n": 20} if nodes == "n" else {})}
    made = proven(graph, isa)
    if not runs_here(isa):
        pytest.skip(f"this processor lacks instructions of {isa}")
    arrays = arrays_for(graph, 20, **symbols)
    (expected,) = evaluate(graph, *arrays, **symbols)
    (found,) = checked.run(made, *arrays, threads=2, **symbols)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
