"""Sums of millions of floats lose no more than sums of a few hundred."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, flip, matmul, pad
from tensorkiln.dtypes import DType
from tensorkiln.reference import evaluate
from tests.checked import ready
from tests.checked import run_graph as run
from tests.compiled import compiled, program

Array = np.ndarray[Any, Any]

CONSTANT = 1e-5
"""Relative error of equal terms, whose roundings all go one way."""
RANDOM = 2e-6
"""Relative error of random positive terms."""


def total(x: Tensor) -> Tensor:
    return x.sum()


def mean(x: Tensor) -> Tensor:
    return x.mean()


def columns(x: Tensor) -> Tensor:
    return x.reshape(-1, 16).sum(0).sum()


def strided(x: Tensor) -> Tensor:
    return x.reshape(-1, 2).sum(0).sum()


def nested(x: Tensor) -> Tensor:
    return flip(x.reshape(-1, 64, 128), 1).transpose(0, 2).sum()


def squares(x: Tensor) -> Tensor:
    return (x * x).sum()


def padded(x: Tensor) -> Tensor:
    return pad(x, [(5, 9)]).sum()


FUNCTIONS: tuple[Callable[[Tensor], Tensor], ...] = (total, mean, columns, strided, nested, squares, padded)


def reference(function: Callable[[Tensor], Tensor], array: Array) -> float:
    terms = array.astype(np.float64)
    exact = float(np.sum(terms * terms)) if function is squares else float(np.sum(terms))
    return exact / array.size if function is mean else exact


@pytest.mark.parametrize("length", [1 << 22, 1 << 24, (1 << 22) + 8192])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_long_sum_is_as_exact_as_a_short_one(function: Callable[[Tensor], Tensor], length: int) -> None:
    b = Builder("long")
    b.output(function(b.input("float32", (length,))))
    made = program(compiled(b.graph()))
    for array, bound in (
        (np.full(length, 0.1, np.float32), CONSTANT),
        (np.random.default_rng(7).random(length, np.float32), RANDOM),
    ):
        (result,) = made(array)
        assert math.isclose(float(result), reference(function, array), rel_tol=bound)
        (again,) = made(array)
        assert result.tobytes() == again.tobytes()


def test_a_symbolic_length_may_end_anywhere_in_a_block() -> None:
    b = Builder("symbolic")
    n = b.symbol("n", 0, 1 << 30)
    x = b.input("float32", (n,))
    b.output(x.sum())
    made = ready(b.graph())
    for length in (0, 1, 4095, 4096, 4097, 3 * 4096, 100_003, 1 << 24):
        array = np.random.default_rng(length).random(length, np.float32)
        (result,) = made(array, n=length)
        assert math.isclose(float(result), float(array.sum(dtype=np.float64)), rel_tol=RANDOM), length


def test_columns_end_anywhere_in_a_block() -> None:
    b = Builder("columns")
    n, m = b.symbol("n", 0, 1 << 20), b.symbol("m", 1, 1 << 16)
    x = b.input("float32", (n, m))
    b.output(x.sum(0), x.mean(0) * 2)
    made = ready(b.graph())
    for rows, width in product((0, 1, 511, 512, 513, 5000), (8, 3000)):
        array = np.random.default_rng(rows).random((rows, width), np.float32)
        total, twice = made(array, n=rows, m=width)
        exact = array.sum(0, dtype=np.float64)
        np.testing.assert_allclose(total, exact, rtol=RANDOM)
        if rows:
            np.testing.assert_allclose(twice, exact / rows * 2, rtol=RANDOM)


def test_threads_change_nothing() -> None:
    b = Builder("threads")
    x = b.input("float32", (6000, 5000))
    b.output(x.sum(0))
    made = compiled(b.graph())
    array = np.random.default_rng(1).random((6000, 5000), np.float32)
    one, four = (program(made, threads=threads)(array)[0] for threads in (1, 4))
    assert one.tobytes() == four.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_long_mean_of_16_bits_is_rounded_once(dtype: str) -> None:
    b = Builder("narrow")
    b.output(b.input(dtype, (1 << 24,)).mean())
    graph = b.graph()
    array = np.full(1 << 24, 0.1).astype(DType(dtype).numpy)
    (result,) = run(graph, array)
    assert result == array[0]


def test_float64_is_summed_in_blocks() -> None:
    b = Builder("double")
    b.output(b.input("float64", (1 << 22,)).sum())
    array = np.full(1 << 22, 0.1)
    (result,) = run(b.graph(), array)
    assert math.isclose(float(result), math.fsum(array), rel_tol=5e-14)


def test_infinities_and_nan_come_through() -> None:
    b = Builder("special")
    b.output(b.input("float32", (3, 100_000)).sum(1))
    array = np.ones((3, 100_000), np.float32)
    array[0, 70_000] = np.inf
    array[1, 50_000:50_002] = np.inf, -np.inf
    array[2, 5] = np.nan
    graph = b.graph()
    (result,) = run(graph, array)
    np.testing.assert_array_equal(result, evaluate(graph, array)[0])


def test_a_contraction_of_great_depth() -> None:
    b = Builder("deep")
    b.output(matmul(b.input("float32", (16, 1 << 18)), b.input("float32", (1 << 18, 64))))
    graph = b.graph()
    left, right = np.full((16, 1 << 18), 0.1, np.float32), np.ones((1 << 18, 64), np.float32)
    (result,) = run(graph, left, right)
    np.testing.assert_allclose(result, float(np.float32(0.1)) * (1 << 18), rtol=2 * CONSTANT)
