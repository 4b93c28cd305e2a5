"""Operators against NumPy's on the same arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorkiln.build import (
    Builder,
    absolute,
    maximum,
    minimum,
    multiply_add,
    sign,
    truncating_divide,
    truncating_remainder,
    where,
)

if TYPE_CHECKING:
    from tests.build.conftest import Compute

FLOATS = np.array([-7.5, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0, np.inf, np.nan], np.float32)
INTEGERS = np.array([-128, -7, -1, 0, 1, 2, 7, 127], np.int8)
UNSIGNED = np.array([0, 1, 2, 7, 200, 255], np.uint8)


def pairs(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Every value against every other."""
    left, right = np.meshgrid(values, values, indexing="ij")
    return left, right


@pytest.mark.parametrize("values", [FLOATS, INTEGERS, UNSIGNED], ids=["float32", "int8", "uint8"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "lt", "le", "gt", "ge", "eq", "ne"])
def test_an_operator_is_numpys(compute: Compute, values: np.ndarray[Any, Any], name: str):
    operation = getattr(operator, name)
    left, right = pairs(values)
    with np.errstate(all="ignore"):
        expected = operation(left, right)
    np.testing.assert_array_equal(compute(operation, left, right), expected)


@pytest.mark.parametrize("name", ["floordiv", "mod"])
@pytest.mark.parametrize("values", [INTEGERS, UNSIGNED, FLOATS[:-2]], ids=["int8", "uint8", "float32"])
def test_division_rounds_down_as_numpys_does(compute: Compute, values: np.ndarray[Any, Any], name: str):
    operation = getattr(operator, name)
    left, right = pairs(values)
    keep = right != 0
    left, right = left[keep], right[keep]
    with np.errstate(all="ignore"):
        expected = operation(left, right)
    np.testing.assert_array_equal(compute(operation, left, right), expected)


@pytest.mark.parametrize("divisor", [3, -3, 127])
def test_division_by_a_literal_rounds_down(compute: Compute, divisor: int):
    np.testing.assert_array_equal(compute(lambda x: x // divisor, INTEGERS), INTEGERS // divisor)
    np.testing.assert_array_equal(compute(lambda x: x % divisor, INTEGERS), INTEGERS % divisor)
    dividend = np.array([-7, -1, 1, 2, 5], np.int32)
    np.testing.assert_array_equal(compute(lambda x: divisor // x, dividend), divisor // dividend)
    np.testing.assert_array_equal(compute(lambda x: divisor % x, dividend), divisor % dividend)


def test_integer_division_by_zero_gives_zero_and_leaves_the_dividend(compute: Compute):
    zero = np.zeros_like(INTEGERS)
    np.testing.assert_array_equal(compute(operator.floordiv, INTEGERS, zero), zero)
    np.testing.assert_array_equal(compute(operator.mod, INTEGERS, zero), INTEGERS)


def test_float_division_is_ieee_and_floor_division_by_zero_is_too(compute: Compute):
    left, right = pairs(FLOATS)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compute(operator.truediv, left, right), left / right)
        zero = np.zeros_like(FLOATS)
        np.testing.assert_array_equal(compute(operator.floordiv, FLOATS, zero), FLOATS / zero)


def test_truncating_division_is_cs(compute: Compute):
    left, right = pairs(INTEGERS[1:])
    keep = right != 0
    left, right = left[keep].astype(np.int32), right[keep].astype(np.int32)
    expected = np.trunc(left / right).astype(np.int32)
    np.testing.assert_array_equal(compute(truncating_divide, left, right), expected)
    np.testing.assert_array_equal(compute(truncating_remainder, left, right), np.fmod(left, right))


@pytest.mark.parametrize("name", ["and_", "or_", "xor"])
@pytest.mark.parametrize("values", [INTEGERS, UNSIGNED, np.array([False, True])], ids=["int8", "uint8", "bool"])
def test_a_bitwise_operator_is_numpys(compute: Compute, values: np.ndarray[Any, Any], name: str):
    operation = getattr(operator, name)
    left, right = pairs(values)
    np.testing.assert_array_equal(compute(operation, left, right), operation(left, right))
    np.testing.assert_array_equal(compute(operator.invert, values), ~values)


@pytest.mark.parametrize("values", [INTEGERS, UNSIGNED], ids=["int8", "uint8"])
def test_shifts_are_numpys_while_the_amount_is_in_range(compute: Compute, values: np.ndarray[Any, Any]):
    amounts = np.arange(8, dtype=values.dtype)[:, None]
    grid, shift = np.broadcast_arrays(values, amounts)
    grid, shift = np.ascontiguousarray(grid), np.ascontiguousarray(shift)
    np.testing.assert_array_equal(compute(operator.lshift, grid, shift), grid << shift)
    np.testing.assert_array_equal(compute(operator.rshift, grid, shift), grid >> shift)
    one = np.ones_like(values)
    np.testing.assert_array_equal(compute(lambda x: 1 << (x & 7), values), one << (values & 7))


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1.5])
def test_powers_are_numpys(compute: Compute, exponent: float):
    base = np.array([0.25, 1.0, 2.5, 9.0], np.float32)
    np.testing.assert_allclose(compute(lambda x: x**exponent, base), base**exponent, rtol=1e-6)
    np.testing.assert_allclose(compute(lambda x: 2.0**x, base), 2.0**base, rtol=1e-6)


def test_integer_powers_wrap(compute: Compute):
    base = np.array([-3, -1, 0, 1, 2, 7], np.int8)
    np.testing.assert_array_equal(compute(lambda x: x**3, base), base**3)


@pytest.mark.parametrize("values", [FLOATS, INTEGERS, UNSIGNED], ids=["float32", "int8", "uint8"])
def test_extremes_magnitude_and_sign_are_numpys(compute: Compute, values: np.ndarray[Any, Any]):
    left, right = pairs(values)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compute(maximum, left, right), np.maximum(left, right))
        np.testing.assert_array_equal(compute(minimum, left, right), np.minimum(left, right))
        np.testing.assert_array_equal(compute(operator.neg, values), -values)
        np.testing.assert_array_equal(compute(absolute, values), np.abs(values))
        np.testing.assert_array_equal(compute(sign, values), np.sign(values))


def test_multiply_add_and_where_take_tensors_and_scalars(compute: Compute):
    x = np.array([1.0, 2.0, 3.0], np.float32)
    np.testing.assert_allclose(compute(lambda x: multiply_add(x, x, 1), x), x * x + 1)
    np.testing.assert_array_equal(compute(lambda x: where(x > 1.5, x, 0.0), x), [0, 2, 3])
    np.testing.assert_array_equal(compute(lambda x: where(x > 1.5, -1.0, x), x), [1, -1, -1])
    np.testing.assert_array_equal(compute(lambda x: x.clip(1.5, 2.5), x), [1.5, 2, 2.5])


ROUNDINGS: dict[str, Callable[..., Any]] = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ROUNDINGS)
def test_rounding_is_numpys_down_to_the_sign_of_zero(compute: Compute, name: str, dtype: type):
    steps = np.arange(-21, 22) / 8
    large = np.array([1e4, -1e4, 2**22 + 0.5, 2**24 + 2, 1e15 + 0.5, 1e30, np.inf, -np.inf, np.nan, -0.0])
    with np.errstate(all="ignore"):
        values = np.concatenate([steps, large]).astype(dtype)
    actual, expected = compute(lambda x: getattr(x, name)(), values), ROUNDINGS[name](values)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


def test_trunc_is_one_node():
    b = Builder("trunc")
    b.output(b.input("float32", (4,)).trunc())
    assert [node.node for node in b.graph().nodes] == ["placeholder", "unary"]
