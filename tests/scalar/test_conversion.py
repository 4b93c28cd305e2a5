"""Casts between all pairs of dtypes, and the conversions of 16-bit floats over all their values."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from passes import scalar
from tensorkiln.dtypes import DType
from tensorkiln.reference.conversion import cast as reference_cast
from tests.scalar.kernel import TARGETS, Kernel, cast, conversion, kernel, kernels
from tests.scalar.values import FLOATS, INTEGERS, Array, assert_same, edges, patterns

DTYPES = (*FLOATS, *INTEGERS, DType.BOOL)
HALVES = (DType.FLOAT16, DType.BFLOAT16)


def _arguments(dtype: DType) -> Array:
    parts = [edges(dtype), patterns(dtype, 20_000)]
    generator = np.random.default_rng(4)
    if dtype.is_float:
        # Values of the size of integers, which random patterns seldom are.
        size = np.exp2(generator.uniform(-2, 66, 20_000)) * generator.choice([-1, 1], 20_000)
        with np.errstate(over="ignore"):
            parts.append(size.astype(dtype.numpy))
    elif dtype.is_integer:
        # Integers with few bits and one far below: the ones that a double rounding gets wrong.
        base = np.int64(1) << generator.integers(0, dtype.bits - 1, 20_000)
        near = base + (base >> generator.integers(1, 12, 20_000)) + generator.integers(-1, 2, 20_000)
        parts.append(near.astype(dtype.numpy))
    return np.concatenate(parts)


@cache
def casts(source: DType, target: str) -> dict[str, Kernel]:
    """The casts of a dtype to every other."""
    return kernels({str(destination): conversion(source, destination) for destination in DTYPES}, target)


# What is made for a dtype is made once, so its tests are done by one process.
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("destination", DTYPES)
@pytest.mark.parametrize(
    "source", [pytest.param(dtype, marks=pytest.mark.xdist_group(f"casts {dtype}")) for dtype in DTYPES], ids=str
)
def test_a_cast_is_the_references(source: DType, destination: DType, target: str) -> None:
    x = _arguments(source)
    with np.errstate(all="ignore"):
        expected = reference_cast(x, source, destination)
    assert_same(casts(source, target)[str(destination)](x), expected, x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", HALVES)
def test_every_value_of_16_bits_survives_float32_and_float64(dtype: DType, target: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    for wide in (DType.FLOAT32, DType.FLOAT64):
        widened = cast(dtype, wide, target)(x)
        with np.errstate(invalid="ignore"):
            expected = x.astype(wide.numpy)
        assert_same(widened, expected, x)
        assert_same(cast(wide, dtype, target)(widened), x, widened)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("wide", [DType.FLOAT32, DType.FLOAT64])
def test_ties_go_to_even_and_what_is_beside_a_tie_does_not(dtype: DType, wide: DType, target: str) -> None:
    values = np.arange(0x7C00 if dtype is DType.FLOAT16 else 0x7F80, dtype=np.uint16).view(dtype.numpy)
    exact = values.astype(np.float64)
    ties = (exact[:-1] + exact[1:]) / 2
    ties = ties[ties == ties.astype(wide.numpy)]
    lower, upper = values[:-1][: ties.size], values[1:][: ties.size]
    is_lower_even = (lower.view(np.uint16) & 1) == 0
    tied = ties.astype(wide.numpy)
    narrow = cast(wide, dtype, target)
    assert_same(narrow(tied), np.where(is_lower_even, lower, upper), tied)
    assert_same(narrow(np.nextafter(tied, wide.numpy.type(0))), lower, tied)
    assert_same(narrow(np.nextafter(tied, wide.numpy.type(np.inf))), upper, tied)
    assert_same(narrow(-tied), -np.where(is_lower_even, lower, upper), tied)


@pytest.mark.parametrize("destination", INTEGERS)
def test_float_to_integer_bounds(destination: DType) -> None:
    """NaN is 0; int32, int64 and uint64 saturate above; the rest wraps a saturated wider integer."""
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 300.7, -1.0, -0.9])
    wide = {DType.INT64: 63, DType.UINT32: 63, DType.UINT64: 64}.get(destination, 31)
    low = -(1 << 63) if wide > 31 else -(1 << 31)
    saturated = [0, (1 << wide) - 1, low, (1 << wide) - 1, low, 300, -1, 0]
    mask = (1 << destination.bits) - 1
    expected = np.array([value & mask for value in saturated], f"u{destination.itemsize}").view(destination.numpy)
    assert_same(cast(DType.FLOAT64, destination)(x), expected, x)


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        (DType.FLOAT32, DType.INT32),
        (DType.FLOAT16, DType.BFLOAT16),
        (DType.UINT64, DType.FLOAT64),
        (DType.INT8, DType.UINT8),
        (DType.UINT8, DType.BOOL),
        (DType.BOOL, DType.INT8),
        (DType.FLOAT32, DType.FLOAT32),
    ],
)
def test_a_bitcast_keeps_the_bytes(source: DType, destination: DType) -> None:
    x = np.concatenate([edges(source), patterns(source, 2000)])
    compiled = kernel(
        lambda _, values: scalar.bitcast_same_width(source, destination, values[0]), (source,), destination
    )
    expected = x != 0 if destination.is_bool else x.view(destination.numpy)
    assert compiled(x).tobytes() == expected.tobytes()


def test_a_bitcast_across_sizes_is_an_error() -> None:
    with pytest.raises(ValueError, match="size"):
        kernel(
            lambda _, values: scalar.bitcast_same_width(DType.FLOAT32, DType.FLOAT64, values[0]),
            (DType.FLOAT32,),
            DType.FLOAT64,
        )
