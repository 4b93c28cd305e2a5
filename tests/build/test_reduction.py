"""Reductions against NumPy, static and symbolic, with and without the reduced axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorkiln.build import Builder
from tensorkiln.errors import InvalidGraphError
from tensorkiln.reference import evaluate

if TYPE_CHECKING:
    from tests.build.conftest import Compute

AXES = [None, 0, 1, -1, (0, 2), (-1, 0, 1), ()]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std"])
def test_a_float_reduction_is_numpys(compute: Compute, rng: np.random.Generator, name: str, axis: Any, keepdims: bool):
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    expected = getattr(np, name)(x.astype(np.float64), axis=axis, keepdims=keepdims)
    for shapes in (None, [("n", 4, "m")]):
        actual = compute(lambda x: getattr(x, name)(axis, keepdims), x, shapes=shapes)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_an_integer_reduction_keeps_the_dtype_and_wraps(
    compute: Compute, rng: np.random.Generator, name: str, dtype: type
):
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, (3, 4), dtype=dtype, endpoint=True)
    x[0, 0] = limits.min
    expected = getattr(np, name)(x, axis=1, **({"dtype": dtype} if name in ("sum", "prod") else {}))
    np.testing.assert_array_equal(compute(lambda x: getattr(x, name)(1), x), expected)


def test_bools_are_reduced_by_any_and_all_and_counted_in_a_given_dtype(compute: Compute, rng: np.random.Generator):
    x = rng.random((5, 4)) < 0.4
    np.testing.assert_array_equal(compute(lambda x: x.any(1), x), x.any(1))
    np.testing.assert_array_equal(compute(lambda x: x.all(0), x), x.all(0))
    np.testing.assert_array_equal(compute(lambda x: x.max(0), x), x.max(0))
    np.testing.assert_array_equal(compute(lambda x: x.min(0), x), x.min(0))
    np.testing.assert_array_equal(compute(lambda x: x.sum(0, dtype="int32"), x), x.sum(0))


def test_a_reduction_of_nothing_is_the_identity():
    builder = Builder()
    x = builder.input("float32", (0, 2))
    builder.output(x.sum(0), x.prod(0), x.max(0), x.min(0), x.mean(0))
    total, product, most, least, mean = evaluate(builder.graph(), np.zeros((0, 2), np.float32))
    assert total.tolist() == [0, 0]
    assert product.tolist() == [1, 1]
    assert most.tolist() == [-np.inf, -np.inf]
    assert least.tolist() == [np.inf, np.inf]
    assert np.isnan(mean).all()


def test_variance_subtracts_the_correction(compute: Compute, rng: np.random.Generator):
    x = rng.standard_normal((6, 3)) + 1e6
    np.testing.assert_allclose(compute(lambda x: x.var_(0, correction=1), x), x.var(0, ddof=1), rtol=1e-9)
    np.testing.assert_allclose(
        compute(lambda x: x.var_(0, correction=1), x, shapes=[("n", 3)]), x.var(0, ddof=1), rtol=1e-9
    )


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_position_of_an_extreme_is_the_first(
    compute: Compute, rng: np.random.Generator, name: str, axis: int | None
):
    for x in (
        rng.integers(-3, 3, (7, 9)).astype(np.int8),
        rng.integers(0, 3, (7, 9)).astype(np.uint16),
        rng.integers(0, 3, (7, 9)).astype(np.float32),
        np.where(rng.random((7, 9)) < 0.2, np.nan, rng.random((7, 9))),
    ):
        expected = getattr(np, name)(x, axis=axis)
        np.testing.assert_array_equal(compute(lambda x: getattr(x, name)(axis), x), expected)
        np.testing.assert_array_equal(compute(lambda x: getattr(x, name)(axis), x, shapes=[("n", "m")]), expected)


@pytest.mark.parametrize("axis", [3, -4, (0, 0), (1, -2)])
def test_a_bad_axis_is_refused(axis: Any):
    with pytest.raises(InvalidGraphError, match="ax"):
        Builder().input("float32", (2, 3, 4)).sum(axis)
