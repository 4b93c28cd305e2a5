"""The first elements in order: few of a long axis are selected one after the other, all others are ranked."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln.build import Builder
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.composed import ranking
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, run

FLOATS = [DType.FLOAT16, DType.FLOAT32, DType.FLOAT64]
INTEGERS = [DType.INT8, DType.UINT8, DType.INT32, DType.INT64, DType.UINT64]


def graph_of(dtype: DType, shape: tuple[int, ...], axis: int, count: int, *, is_largest: bool) -> Graph:
    b = Builder("first")
    b.output(*ranking.first_in_order(b.input(dtype.value, shape), axis, count, is_largest))
    return b.graph()


def in_order(values: np.ndarray, axis: int, count: int, *, is_largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """NumPy's stable sort, in which NaN is greater than all numbers, along either direction."""
    moved = np.moveaxis(values, axis, -1)
    if is_largest:
        turned = moved.shape[-1] - 1 - np.argsort(moved[..., ::-1], axis=-1, kind="stable")
        places = turned[..., ::-1]
    else:
        places = np.argsort(moved, axis=-1, kind="stable")
    places = places[..., :count]
    return np.moveaxis(np.take_along_axis(moved, places, -1), -1, axis), np.moveaxis(places, -1, axis)


def drawn(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Few distinct values, so that many are equal; of floats also both zeros, infinities and NaN."""
    rng = np.random.default_rng(5)
    if dtype in FLOATS:
        known = np.array([-np.inf, -2.5, -1.0, -0.0, 0.0, 1.5, 3.0, np.inf, np.nan])
        return rng.choice(known, shape).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    return rng.choice(np.array([limits.min, 0, 1, 7, limits.max], dtype.numpy), shape)


@pytest.mark.parametrize("is_largest", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("count", [1, 5, ranking.FEW + 1])
def test_the_first_of_a_long_axis_are_those_of_a_stable_sort(dtype: DType, count: int, is_largest: bool) -> None:
    values = drawn(dtype, (3, 70))
    graph = graph_of(dtype, (3, 70), 1, count, is_largest=is_largest)
    expected = in_order(values, 1, count, is_largest=is_largest)
    for found in (evaluate(graph, values), checked.run(compiled(graph), values)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("is_largest", [False, True])
@pytest.mark.parametrize(("dtype", "extent", "count"), [(DType.FLOAT32, 9001, 40), (DType.UINT8, 700, 21)])
def test_more_of_a_longer_axis_are_selected_in_a_loop(dtype: DType, extent: int, count: int, is_largest: bool) -> None:
    values = drawn(dtype, (2, extent))
    graph = graph_of(dtype, (2, extent), 1, count, is_largest=is_largest)
    assert any(node.node == "while" for node in graph.nodes)
    expected = in_order(values, 1, count, is_largest=is_largest)
    for found in (evaluate(graph, values), checked.run(compiled(graph), values, threads=2)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_long_axis_is_sorted() -> None:
    values = drawn(DType.FLOAT32, (ranking.MAX_RANKED + 5,))
    graph = graph_of(DType.FLOAT32, values.shape, 0, len(values), is_largest=False)
    for one, other in zip(run(graph, values), in_order(values, 0, len(values), is_largest=False), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_loop_that_sorts_an_axis_keeps_to_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "MAX_RANKED", 256)
    values = drawn(DType.FLOAT32, (ranking.MAX_RANKED + 5,))
    graph = graph_of(DType.FLOAT32, values.shape, 0, len(values), is_largest=False)
    assert any(node.node == "while" for node in graph.nodes)
    found = checked.run(compiled(graph), values)
    for one, other in zip(found, in_order(values, 0, len(values), is_largest=False), strict=True):
        np.testing.assert_array_equal(one, other)


def test_any_number_of_rows_is_selected_from() -> None:
    b = Builder("rows")
    x = b.input("float32", (b.symbol("n", 0, 8), 200))
    b.output(*ranking.first_in_order(x, 1, 18, True), *ranking.first_in_order(x, 1, 3, False))
    graph = b.graph()
    made = compiled(graph)
    for rows in (0, 1, 5):
        values = drawn(DType.FLOAT32, (rows, 200))
        expected = [*in_order(values, 1, 18, is_largest=True), *in_order(values, 1, 3, is_largest=False)]
        for found in (evaluate(graph, values, n=rows), checked.run(made, values, n=rows)):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def test_more_elements_than_are_selected_are_refused() -> None:
    with pytest.raises(UnsupportedGraphError, match="65537"):
        graph_of(DType.FLOAT32, (70000,), 0, ranking.MAX_SELECTED + 1, is_largest=True)


def test_the_first_along_an_outer_axis() -> None:
    values = drawn(DType.FLOAT32, (90, 4))
    graph = graph_of(DType.FLOAT32, (90, 4), 0, 3, is_largest=True)
    for one, other in zip(checked.run(compiled(graph), values), in_order(values, 0, 3, is_largest=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_short_axis_gives_all_its_elements() -> None:
    values = drawn(DType.FLOAT32, (2, 9))
    graph = graph_of(DType.FLOAT32, (2, 9), 1, 9, is_largest=False)
    for one, other in zip(evaluate(graph, values), in_order(values, 1, 9, is_largest=False), strict=True):
        np.testing.assert_array_equal(one, other)
