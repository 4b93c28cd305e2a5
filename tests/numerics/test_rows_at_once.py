"""Rows that are reduced together: each is what it would be alone, at any count of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, gather
from tests import checked
from tests.compiled import proven, runs_here

TARGETS = ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:native")
WIDTH = 515
REDUCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "product": lambda x, w: x @ w,
    "sum": lambda x, w: (x * w).sum(-1),
    "maximum": lambda x, w: (x + w).max(-1),
    "mean behind a scale": lambda x, w: (x * w).sum(-1) / 7.0 + 1.0,
}
EXPECTED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "product": lambda x, w: x @ w,
    "sum": lambda x, w: (x * w).sum(-1),
    "maximum": lambda x, w: (x + w).max(-1),
    "mean behind a scale": lambda x, w: (x * w).sum(-1) / 7 + 1,
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("rows", [8, 23, 64, 130, None])
def test_each_row_is_what_it_is_alone(name: str, rows: int | None, target: str) -> None:
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    b = Builder("rows")
    n = rows or b.symbol("n", 1, 400)
    x, w = b.input("float32", (n, WIDTH)), b.input("float32", (WIDTH,))
    b.output(REDUCTIONS[name](x, w))
    compilation = proven(b.graph(), target)
    rng = np.random.default_rng(5)
    for count in [rows] if rows else (1, 3, 4, 63, 64, 65, 131, 400):
        arrays = [rng.integers(-4, 5, shape).astype(np.float32) for shape in ((count, WIDTH), (WIDTH,))]
        (result,) = checked.run(compilation, *arrays, threads=2, **({} if rows else {"n": count}))
        np.testing.assert_allclose(result, EXPECTED[name](*(array.astype(np.float64) for array in arrays)), rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_long_rows_are_reduced_together_block_by_block(target: str) -> None:
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    b = Builder("blocks")
    n, width = b.symbol("n", 1, 20), b.symbol("width", 1, 10_000)
    x, w = b.input("float32", (n, width)), b.input("float32", (width,))
    b.output((x * w).sum(-1) / 7.0 + 1.0)
    compilation = proven(b.graph(), target)
    rng = np.random.default_rng(6)
    for rows, columns in ((1, 1), (3, 4096), (8, 4097), (13, 9000)):
        arrays = [rng.integers(-4, 5, shape).astype(np.float32) for shape in ((rows, columns), (columns,))]
        (result,) = checked.run(compilation, *arrays, threads=2, n=rows, width=columns)
        expected = (arrays[0].astype(np.float64) * arrays[1]).sum(-1) / 7 + 1
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -0.0])
def test_a_maximum_of_each_row_has_its_own_nan_and_signs(bad: float) -> None:
    b = Builder("maximum")
    b.output(b.input("float32", (16, 300)).max(-1))
    x = np.full((16, 300), -1, np.float32)
    x[5, 299] = x[10, 0] = bad
    (result,) = checked.run(proven(b.graph()), x)
    expected = x.max(-1)
    np.testing.assert_array_equal(result, expected)
    assert np.array_equal(np.signbit(result), np.signbit(expected)) or np.isnan(bad)


def test_rows_that_gather_beside_their_stream_and_store_in_place_are_reduced_together() -> None:
    b = Builder("gathered")
    n = b.symbol("n", 1, 400)
    x, places, y = b.input("float32", (n, 300)), b.input("int32", (n, 1)), b.input("float32", (n,))
    table = b.input("float32", (50, 300))
    chosen = gather(table, places.expand((n, 300)), 0)
    b.output((x * chosen).sum(-1) * (y + 1.0) + y)
    rng = np.random.default_rng(4)
    program = proven(b.graph())
    for rows in (1, 5, 112, 113, 400):
        shapes = ((rows, 300), (rows,), (50, 300))
        x_, y_, table_ = (rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes)
        places_ = rng.integers(0, 50, (rows, 1)).astype(np.int32)
        (result,) = checked.run(program, x_, places_, y_, table_, n=rows)
        np.testing.assert_array_equal(result, (x_ * table_[places_[:, 0]]).sum(-1) * (y_ + 1) + y_)


def test_rows_of_two_axes_are_reduced_together() -> None:
    b = Builder("batch")
    m = b.symbol("m", 1, 30)
    x = b.input("float32", (3, m, 300))
    b.output((x + x.transpose(0, 1).reshape(m * 3, 300).reshape(m, 3, 300).transpose(0, 1)).sum(-1))
    rng = np.random.default_rng(3)
    program = proven(b.graph())
    for rows in (1, 4, 17, 30):
        array = rng.integers(-4, 5, (3, rows, 300)).astype(np.float32)
        (result,) = checked.run(program, array, m=rows)
        np.testing.assert_array_equal(result, 2 * array.sum(-1))
