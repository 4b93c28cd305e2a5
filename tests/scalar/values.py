"""Arguments to test with, and the distance of a result from the truth."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorkiln.dtypes import DType

Array = NDArray[Any]

FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)
WIDE_FLOATS = (DType.FLOAT32, DType.FLOAT64)
INTEGERS = tuple(dtype for dtype in DType if dtype.is_integer)
_FRACTION_BITS = {DType.FLOAT16: 10, DType.BFLOAT16: 7, DType.FLOAT32: 23, DType.FLOAT64: 52}


def patterns(dtype: DType, count: int, seed: int = 1) -> Array:
    """Random bit patterns: every exponent, sign, NaN and infinity that chance gives."""
    generator = np.random.default_rng(seed)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    bits = generator.integers(0, np.iinfo(unsigned).max, count, dtype=unsigned, endpoint=True)
    return bits.astype(np.bool_) if dtype.is_bool else bits.view(dtype.numpy)


def edges(dtype: DType) -> Array:
    """Values at which something changes: zeros, denormals, ones, bounds of every integer, infinities, NaN."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_integer:
        low, high = int(dtype.min), int(dtype.max)
        near = {low, low + 1, high, high - 1, high // 2, *range(-9, 10), *range(dtype.bits - 2, dtype.bits + 3)}
        return np.array(sorted(value for value in near if low <= value <= high), dtype.numpy)
    return np.concatenate([_float_edges(dtype), -_float_edges(dtype)])


def _float_edges(dtype: DType) -> Array:
    fraction = _FRACTION_BITS[dtype]
    bits = 8 * dtype.itemsize
    one_exponent = 1 << fraction
    infinity = ((1 << (bits - 1)) - 1) >> fraction << fraction
    special = [
        0,
        1,
        2,
        one_exponent - 1,
        one_exponent,
        one_exponent + 1,
        infinity - 1,
        infinity,
        infinity + one_exponent // 2,
    ]
    unsigned = np.dtype(f"u{dtype.itemsize}")
    exact = np.array(special, unsigned).view(dtype.numpy)
    bounds = [2.0**power for power in (-1, 0, 1, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64)]
    numbers = [1.5, 2.5, 3.0, 0.1, 10.0, 65504.0, 65520.0, 100.25, *bounds, *(bound - 1 for bound in bounds)]
    with np.errstate(over="ignore"):
        return np.concatenate(
            [exact, np.array(numbers).astype(dtype.numpy), np.nextafter(np.array(bounds), 0).astype(dtype.numpy)]
        )


def pairs(first: Array, second: Array) -> tuple[Array, Array]:
    """All pairs of two sets of values."""
    both = list(itertools.product(range(first.size), range(second.size)))
    left, right = np.array(both).T
    return first[left], second[right]


def operands(dtype: DType, count: int = 4000) -> tuple[Array, Array]:
    """All pairs of edges, and random pairs."""
    left, right = pairs(edges(dtype), edges(dtype))
    return (
        np.concatenate([left, patterns(dtype, count, 1)]),
        np.concatenate([right, patterns(dtype, count, 2)]),
    )


def ulps(actual: Array, expected: NDArray[np.longdouble]) -> NDArray[np.float64]:
    """Distances in units in the last place of the expected value rounded to the dtype of the actual one.

    Infinite where one is NaN or infinite and the other, rounded, is not the same.
    """
    with np.errstate(all="ignore"):
        nearest = expected.astype(actual.dtype)
        unit = np.spacing(np.abs(nearest)).astype(np.longdouble)
        distance = np.abs(actual.astype(np.longdouble) - expected) / unit
        is_same = (actual == nearest) | (np.isnan(actual) & np.isnan(nearest))
        is_finite = np.isfinite(actual) & np.isfinite(nearest)
        return np.where(is_finite, distance, np.where(is_same, 0.0, np.inf)).astype(np.float64)


def worst(actual: Array, expected: NDArray[np.longdouble], *arguments: Array) -> tuple[float, list[float]]:
    """The largest distance and the arguments it is at."""
    distances = ulps(actual, expected)
    at = int(np.argmax(distances))
    return float(distances[at]), [float(argument[at]) for argument in arguments]


def assert_same(actual: Array, expected: Array, *arguments: Array) -> None:
    """Equal bit for bit, except that any NaN equals any other."""
    unsigned = np.dtype(f"u{actual.dtype.itemsize}")
    assert actual.dtype == expected.dtype
    differs = actual.view(unsigned) != np.ascontiguousarray(expected).view(unsigned)
    if np.issubdtype(actual.dtype, np.inexact) or "float" in actual.dtype.name:
        with np.errstate(invalid="ignore"):
            differs &= ~(np.isnan(actual) & np.isnan(expected))
    at = np.flatnonzero(differs)
    if at.size:
        case = [argument[at[0]] for argument in arguments]
        raise AssertionError(f"{at.size} differ, first of {case}: {actual[at[0]]!r}, expected {expected[at[0]]!r}")
