"""Scatters along any axis: lines that lie side by side are cleared and updated together."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln import expr
from tensorkiln.build import Builder, scatter
from tensorkiln.expr import Dim
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tensorkiln.schedule import KernelItem
from tests import checked, emulated
from tests.compiled import proven, runs_here

Shape = tuple[int | str, ...]
CASES: list[tuple[Shape, Shape, int]] = [
    ((9, 300), (5, 300), 0),
    ((9, 300), (5, 131), 0),
    ((3, 6, 40), (2, 8, 40), 1),
    ((3, 6, 1), (3, 4, 1), 1),
    ((4, 7), (4, 9), 1),
    (("n", 200), ("m", 200), 0),
    ((5, "n"), (3, "n"), 0),
    ((5, "n"), (3, 2), 0),
    (("m", 6, "n"), (2, 4, "n"), 1),
]
SIZES = [{"n": 3, "m": 2}, {"n": 200, "m": 5}, {"n": 128, "m": 3}]


def graph_of(shape: Shape, updates: Shape, axis: int) -> Graph:
    b = Builder("lines")
    known: dict[str, Dim] = {}

    def dims(of: Shape) -> tuple[Dim, ...]:
        for name in (dim for dim in of if isinstance(dim, str) and dim not in known):
            known[name] = b.symbol(name, 2, 300)
        return tuple(known[dim] if isinstance(dim, str) else dim for dim in of)

    b.output(scatter(b.input("int64", dims(updates)), b.input("float32", dims(updates)), axis, dims(shape)))
    return b.graph()


def arrays_for(graph: Graph, extent: int, **symbols: int) -> list[np.ndarray]:
    """Indices of which some are equal and some out of range, and updates."""
    rng = np.random.default_rng(6)
    shape = [expr.evaluate(dim, symbols) for dim in graph.types[graph.input_vars[0]].shape]
    return [rng.integers(-1, extent + 1, shape), rng.standard_normal(shape).astype(np.float32)]


@pytest.mark.parametrize("isa", ["cpu:x86-64-v3", "cpu:x86-64-v4"])
@pytest.mark.parametrize(("shape", "updates", "axis"), CASES)
def test_lines_side_by_side_take_their_updates_in_order(shape: Shape, updates: Shape, axis: int, isa: str) -> None:
    graph = graph_of(shape, updates, axis)
    made = proven(graph, isa)
    if not runs_here(isa):
        pytest.skip(f"this processor lacks instructions of {isa}")
    for sizes in SIZES:
        symbols = {name: size for name, size in sizes.items() if name in graph.symbols}
        along = shape[axis]
        arrays = arrays_for(graph, symbols[along] if isinstance(along, str) else along, **symbols)
        (expected,) = evaluate(graph, *arrays, **symbols)
        (found,) = checked.run(made, *arrays, threads=2, **symbols)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("shape", "updates", "axis"), CASES[:3])
def test_a_gpu_takes_them_in_order(shape: Shape, updates: Shape, axis: int) -> None:
    graph = graph_of(shape, updates, axis)
    arrays = arrays_for(graph, 6)
    (found,) = emulated.run(graph, *arrays)
    np.testing.assert_array_equal(found, evaluate(graph, *arrays)[0])


def test_a_row_is_a_block_of_lines_unless_they_lie_apart() -> None:
    for axis, rows, inner in ((0, 3, [9, 128]), (1, 9, [300])):
        made = proven(graph_of((9, 300), (9, 300), axis))
        (item,) = (each.operation for each in made.program.schedule.items)
        assert isinstance(item, KernelItem)
        sizes = [each.size for each in item.iter.axes]
        assert sizes[0] == rows
        assert sizes[1 : 1 + len(inner)] == inner
