"""Maxima of long rows, and softmax behind them: numbers that have no order, zeros of both signs, sums that overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, softmax
from tensorkiln.graph import Graph
from tests import checked
from tests.compiled import compiled, runs_here

EXTENT = 133
INF, NAN = np.inf, np.nan


def rows(dtype: str) -> np.ndarray[Any, Any]:
    """Rows of small numbers below -1, each with other numbers at its ends and in between."""
    largest = np.finfo(dtype).max
    odd = (
        (NAN,), (NAN, INF), (-NAN, 1), (INF,), (-INF,), (INF, -INF), (0.0,), (-0.0,), (0.0, -0.0), (-0.0, -0.0),
        (-0.0, -INF), (largest, largest), (-largest, -largest, INF), (largest, largest, -largest, -largest), (5.0,),
        (np.finfo(dtype).smallest_subnormal,), (-np.finfo(dtype).smallest_subnormal, -0.0),
    )  # fmt: skip
    drawn = -1 - np.random.default_rng(7).random((3 * len(odd) + 3, EXTENT))
    for number, values in enumerate(odd):
        for part, first in enumerate((0, 65, EXTENT - len(values))):
            drawn[3 * number + part, first : first + len(values)] = values
    drawn[-3:] = [[-INF], [-0.0], [0.0]]
    return drawn.astype(dtype)


def graph(dtype: str, extent: int | None) -> Graph:
    b = Builder("maximum")
    x = b.input(dtype, (len(rows(dtype)), b.symbol("n", 1, 200) if extent is None else extent))
    b.output(x.max(-1), (x * 2).max(-1), softmax(x))
    return b.graph()


def expected_maximum(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NaN where there is one, and -0 only where all of the largest are."""
    largest = x.max(-1)
    has_positive_zero = ((x == 0) & ~np.signbit(x)).any(-1)
    return np.where(largest == 0, np.where(has_positive_zero, 0.0, -0.0), largest).astype(x.dtype)


@pytest.mark.parametrize("extent", [EXTENT, None])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"])
def test_rows_of_special_numbers(target: str, dtype: str, extent: int | None) -> None:
    compilation = compiled(graph(dtype, extent), target)
    if not runs_here(target):
        pytest.skip("this machine does not run the target")
    x = rows(dtype)
    largest, doubled, shares = checked.run(compilation, x, threads=1, **({} if extent else {"n": EXTENT}))
    with np.errstate(invalid="ignore", over="ignore"):
        for actual, wanted in ((largest, expected_maximum(x)), (doubled, expected_maximum(x * x.dtype.type(2)))):
            np.testing.assert_array_equal(actual, wanted)
            np.testing.assert_array_equal(np.signbit(actual[wanted == 0]), np.signbit(wanted[wanted == 0]))
        powers = np.exp(x - x.max(-1, keepdims=True), dtype=np.float64)
        np.testing.assert_allclose(shares, powers / powers.sum(-1, keepdims=True), rtol=2e-5, atol=1e-30)
