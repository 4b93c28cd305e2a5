"""Reductions that share a sweep over a long row come to what each comes to by itself, wherever its blocks end."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln.build import Builder, Tensor, argmax, argmin, cast, clip, equal, exp, log, var, where
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import program, proven, unscheduled

Array = np.ndarray[Any, Any]
Function = Callable[[Tensor], tuple[Tensor, ...]]

LENGTHS = (0, 1, 2, 4095, 4096, 4097, 3 * 4096, 20_011)


def variance(x: Tensor) -> tuple[Tensor, ...]:
    return x.mean(-1), var(x, -1)


def far_squares(x: Tensor) -> tuple[Tensor, ...]:
    total = x.sum(-1, keepdims=True)
    distance = total * 0.001 + 2 - x
    return total, (distance * distance).sum(-1)


def exponentials(x: Tensor) -> tuple[Tensor, ...]:
    top = x.max(-1, keepdims=True)
    return top, exp(x - top).sum(-1)


def cooled(x: Tensor) -> tuple[Tensor, ...]:
    hot = x * 0.125
    return (log(exp(hot - hot.max(-1, keepdims=True)).sum(-1)),)


def places(x: Tensor) -> tuple[Tensor, ...]:
    return argmax(x, -1), argmin(x, -1)


def ties(x: Tensor) -> tuple[Tensor, ...]:
    is_top = equal(x, x.max(-1, keepdims=True))
    return where(is_top, cast(x, "int32") * 0 + 1, 0).sum(-1), where(is_top, x, -7).max(-1)


def beside(x: Tensor) -> tuple[Tensor, ...]:
    return x.sum(-1), x.max(-1), (x * x).sum(-1), cast(x, "int32").sum(-1)


FUNCTIONS: tuple[Function, ...] = (variance, far_squares, exponentials, cooled, places, ties, beside)


def graph_of(function: Function, length: int | str, dtype: str = "float32", rows: int | str = 3) -> Graph:
    b = Builder("sweep")
    dims = [b.symbol(dim, 0, 1 << 20) if isinstance(dim, str) else dim for dim in (rows, length)]
    b.output(*function(b.input(dtype, dims)))
    return b.graph()


def _normal(rng: np.random.Generator, length: int) -> Array:
    return rng.standard_normal((3, length))


def _far_from_zero(rng: np.random.Generator, length: int) -> Array:
    return 1000 + rng.standard_normal((3, length))


def _one_value(rng: np.random.Generator, length: int) -> Array:
    return np.full((3, length), 0.1)


def _few_values(rng: np.random.Generator, length: int) -> Array:
    return rng.integers(-2, 3, (3, length)).astype(np.float64)


def _rising(rng: np.random.Generator, length: int) -> Array:
    return np.stack([np.linspace(-40, 40, length), np.linspace(40, -40, length), np.zeros(length)])


def _without_a_block(rng: np.random.Generator, length: int) -> Array:
    """One row without a first block, one without a second one, one without any."""
    array = rng.standard_normal((3, length))
    array[0, :4096], array[1, 4096:8192], array[2] = -math.inf, -math.inf, -math.inf
    return array


def _special(rng: np.random.Generator, length: int) -> Array:
    """One row with a NaN, one with inf, one with a NaN in its last block alone."""
    array = rng.standard_normal((3, length))
    if length:
        array[0, length // 3], array[1, length // 2], array[2, -1] = math.nan, math.inf, math.nan
    return array


ARRAYS = (_normal, _far_from_zero, _one_value, _few_values, _rising, _without_a_block, _special)


def _is_close(found: Array, wanted: Array, scale: float, rtol: float) -> None:
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale)


@lru_cache(maxsize=1)
def _made(function: Function) -> tuple[Graph, Compilation, Program]:
    """Of rows of any length, compiled, and lowered by the passes of MLIR alone: once for all arrays."""
    graph = graph_of(function, "n")
    return graph, proven(graph), program(unscheduled(graph))


@pytest.mark.parametrize("make", ARRAYS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_sweep_is_as_exact_as_its_reductions(
    function: Function, make: Callable[[np.random.Generator, int], Array]
) -> None:
    graph, compilation, road = _made(function)
    for length in LENGTHS:
        array = make(np.random.default_rng(length), length).astype(np.float32)
        with np.errstate(all="ignore"):
            wanted = evaluate(graph, array, n=length)
        sizes = np.abs(array[np.isfinite(array)])
        scale = float(sizes.sum() if function in (far_squares, beside) else sizes.max(initial=0) ** 2)
        found = checked.run(compilation, array, n=length)
        for one, other, upstream in zip(found, wanted, road(array, n=length), strict=True):
            _is_close(one, other, scale, 2e-6)
            _is_close(one, upstream, scale, 1e-3)


def distances_from_mean(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdims=True)


def distances_from_maximum(x: Tensor) -> Tensor:
    return x - x.max(-1, keepdims=True)


def distances_from_a_bounded_mean(x: Tensor) -> Tensor:
    return x - clip(x.mean(-1, keepdims=True), -10.0, 10.0)


@lru_cache(maxsize=8)
def _squares_of(distances: Callable[[Tensor], Tensor], length: int) -> tuple[Graph, Compilation]:
    """The sums of rows, and of the squares of their distances: compiled once for all arrays."""

    def squares(x: Tensor) -> tuple[Tensor, ...]:
        away = distances(x)
        return x.sum(-1), (away * away).sum(-1)

    graph = graph_of(squares, length)
    return graph, proven(graph)


@pytest.mark.parametrize("distances", [distances_from_mean, distances_from_maximum], ids=lambda each: each.__name__)
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4, 1e5])
def test_squares_of_what_lies_far_from_zero_are_as_exact_as_their_distances(
    distances: Callable[[Tensor], Tensor], offset: float
) -> None:
    _, compilation = _squares_of(distances, 20_000)
    array = (offset + np.random.default_rng(3).random((3, 20_000))).astype(np.float32)
    _, found = checked.run(compilation, array)
    exact = array.astype(np.float64)
    centre = exact.max(-1, keepdims=True)
    if distances is distances_from_mean:
        # As rounded, which is what the graph says.
        centre = (exact.sum(-1, keepdims=True).astype(np.float32) / np.float32(20_000)).astype(np.float64)
    wanted = np.square(exact - centre).sum(-1)
    rounded = np.spacing(np.float32(max(offset, 1.0))) if distances is distances_from_mean else 0.0
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=20_000 * 4 * float(rounded) ** 2)


@pytest.mark.parametrize("distances", [distances_from_mean, distances_from_maximum, distances_from_a_bounded_mean])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e36, 3e38])
def test_squares_of_what_is_not_finite_are_those_of_their_distances(
    distances: Callable[[Tensor], Tensor], value: float
) -> None:
    graph, compilation = _squares_of(distances, 9000)
    one, all_, some = (np.random.default_rng(row).standard_normal(9000) for row in range(3))
    one[5000], all_[:], some[[3, 8000]] = value, value, (value, -value if math.isinf(value) else value)
    array = np.stack([one, all_, some]).astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, array)
    for each, other in zip(checked.run(compilation, array), wanted, strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-5)


def test_blocks_without_elements_come_to_nothing() -> None:
    b = Builder("nothing")
    n, m = b.symbol("n", 0, 1 << 16), b.symbol("m", 0, 100)
    y = b.input("float32", (n, m)) * b.input("float32", (m,))
    b.output(exp(y - y.max((0, 1), keepdims=True)).sum((0, 1)), y.sum((0, 1)))
    graph = b.graph()
    program = proven(graph)
    for rows, columns in ((5, 0), (0, 5), (0, 0), (5000, 1)):
        arrays = np.zeros((rows, columns), np.float32), np.ones(columns, np.float32)
        found = checked.run(program, *arrays, n=rows, m=columns)
        np.testing.assert_array_equal(found, evaluate(graph, *arrays, n=rows, m=columns))


NUMBERS = tuple(dtype for dtype in DType if dtype.is_float or dtype.is_integer)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_a_sweep_is_of_any_numbers(dtype: DType) -> None:
    low = -9 if dtype.is_float or dtype.is_signed else 0
    array = np.random.default_rng(5).integers(low, 10, (3, 9001)).astype(dtype.numpy)
    for function in (places, beside) if not dtype.is_float else (places, beside, variance, exponentials):
        graph = graph_of(function, array.shape[1], str(dtype))
        found = checked.run(proven(graph), array)
        for one, other in zip(found, evaluate(graph, array), strict=True):
            assert one.dtype == other.dtype
            exact = one.dtype.kind not in "fV" and one.dtype.name != "bfloat16"
            wide = (each if exact else each.astype(np.float64) for each in (one, other))
            np.testing.assert_allclose(*wide, rtol=0 if exact else 2.0 ** -(7 if dtype.is_half else 20))


@pytest.mark.parametrize("rows", [1, 5])
def test_a_sweep_is_over_every_axis_that_is_reduced(rows: int) -> None:
    b = Builder("axes")
    n, width = b.symbol("n", 1, 1 << 12), 13
    x = b.input("float32", (n, rows, width, 60))
    b.output(var(x, (0, 2, 3)), x.max((0, 2, 3)), var(x))
    graph = b.graph()
    array = np.random.default_rng(rows).standard_normal((17, rows, width, 60)).astype(np.float32)
    found = checked.run(proven(graph), array, n=17)
    for one, other in zip(found, evaluate(graph, array, n=17), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6)
