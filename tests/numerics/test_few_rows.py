"""Products of a few rows, which read the right operand where it lies; how many there are may be known at the call."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln.build import Builder, relu
from tensorkiln.graph import Graph
from tests import checked
from tests.compiled import proven, runs_here
from tests.passes.modules import after

TARGETS = ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:native")
DEPTH, COLUMNS = 267, 301
"""More than a block of the depth and a part of eight steps; more than a block of columns and a part of a vector."""


def product(rows: int | None, dtype: str, columns: int | None = COLUMNS) -> Graph:
    """Symbolic, m or n, where no number is given."""
    b = Builder("product")
    m, n = rows or b.symbol("m", 1, 64), columns or b.symbol("n", 1, 300)
    x, w, c = b.input(dtype, (m, DEPTH)), b.input(dtype, (DEPTH, n)), b.input(dtype, (n,))
    y = x @ w + c
    b.output(relu(y) if y.dtype.is_float else y)
    return b.graph()


def check(product: Compilation, rows: int, columns: int, **symbols: int) -> None:
    """Against NumPy in twice the bits, in memory that ends where the operands do."""
    rng = np.random.default_rng(rows)
    dtype = product.program.inputs[0].dtype.numpy
    arrays = [rng.integers(-4, 5, shape).astype(dtype) for shape in ((rows, DEPTH), (DEPTH, columns), (columns,))]
    (result,) = checked.run(product, *arrays, threads=2, **symbols)
    x, w, c = (array.astype(np.float64) for array in arrays)
    wide = x @ w + c
    np.testing.assert_array_equal(result, np.maximum(wide, 0) if dtype.kind == "f" else wide.astype(dtype))


@cache
def of_symbolic_columns() -> Compilation:
    return proven(product(None, "float32", None))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_any_number_of_rows_is_multiplied_by_one_program(dtype: str, target: str) -> None:
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    program = proven(product(None, dtype), target)
    for rows in (1, 2, 5, 8, 16, 17, 23, 61):
        check(program, rows, COLUMNS, m=rows)


@pytest.mark.parametrize("rows", [2, 3, 8, 16, 17])
def test_a_few_known_rows_are_multiplied(rows: int) -> None:
    check(proven(product(rows, "float32")), rows, COLUMNS)


@pytest.mark.parametrize("columns", [8, 15, 16, 31, 33, 257])
def test_columns_of_which_a_part_of_a_vector_is_left_are_multiplied(columns: int) -> None:
    check(of_symbolic_columns(), 3, columns, m=3, n=columns)


def test_blocks_of_a_batch_are_multiplied_each_by_its_own_operand() -> None:
    b = Builder("batch")
    m = b.symbol("m", 1, 30)
    x, w = b.input("float32", (3, m, 40)), b.input("float32", (3, 40, 50))
    b.output(x @ w)
    rng = np.random.default_rng(3)
    program = proven(b.graph())
    for rows in (1, 4, 17):
        arrays = [rng.integers(-4, 5, shape).astype(np.float32) for shape in ((3, rows, 40), (3, 40, 50))]
        (result,) = checked.run(program, *arrays, m=rows)
        np.testing.assert_array_equal(result, arrays[0] @ arrays[1])


def test_rows_that_are_few_at_every_call_have_no_register_tiles() -> None:
    def functions(rows: int | None) -> tuple[bool, bool]:
        text = str(after("realise", product(rows, "float32")))
        return "@multiply_few_float32" in text, "@multiply_float32" in text

    assert [functions(rows) for rows in (3, 64, None)] == [(True, False), (False, True), (True, True)]
