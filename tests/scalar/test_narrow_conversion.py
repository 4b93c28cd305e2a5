"""Casts to and from the narrow dtypes: every code, every boundary of rounding, and all pairs with all other dtypes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from passes import scalar
from tensorkiln.dtypes import DType
from tensorkiln.reference.conversion import cast as reference_cast
from tests.scalar.kernel import TARGETS, Kernel, Loop, cast, conversion, kernel, kernels
from tests.scalar.values import FLOATS, INTEGERS, Array, assert_same, edges, patterns

NARROW = tuple(dtype for dtype in DType if dtype.is_narrow)
NARROW_FLOATS = tuple(dtype for dtype in NARROW if dtype.wide.is_float)
NARROW_INTEGERS = tuple(dtype for dtype in NARROW if dtype.wide.is_integer)
WIDE = (*FLOATS, *INTEGERS, DType.BOOL)
SIGN = {dtype: 1 << (dtype.bits - 1) for dtype in NARROW_FLOATS}


def codes(dtype: DType) -> Array:
    """Every element of a narrow dtype."""
    return np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)


def magnitudes(dtype: DType) -> Array:
    """The finite values from 0 up, by their codes, in float64."""
    values = codes(dtype)[: SIGN[dtype]].astype(np.float64)
    return values[np.isfinite(values)]


def beyond(dtype: DType) -> float:
    """The least magnitude above all of the dtype: what would come next if its exponents were unbounded."""
    values = magnitudes(dtype)
    return float(values[-1] + (values[-1] - values[-2]))


def nearest(dtype: DType, x: Array) -> Array:
    """The codes of float64 numbers, by search among the values: another way than that of the reference."""
    values = magnitudes(dtype)
    size = np.abs(x)
    steps = np.append(values, beyond(dtype))
    above = np.clip(np.searchsorted(steps, size), 1, len(values))
    low, high = steps[above - 1], steps[above]
    middle = (low + high) / 2
    code = np.where((size > middle) | ((size == middle) & (above % 2 == 0)), above, above - 1)
    special = int(np.array(np.inf, np.float32).astype(dtype.numpy).view(np.uint8))
    code = np.where(code >= len(values), special, code)
    has_one_zero = str(dtype).endswith("fnuz")
    signed = np.where(np.signbit(x) & ~(has_one_zero & (code == 0)), code | SIGN[dtype], code)
    nan = 0 if dtype is DType.FLOAT4_E2M1FN else int(np.array(np.nan, np.float32).astype(dtype.numpy).view(np.uint8))
    return np.where(np.isnan(x), nan, signed).astype(np.uint8).view(dtype.numpy)


def boundaries(dtype: DType, source: DType) -> Array:
    """Values, the middles between them, and what is beside each in `source`; of both signs, and what is far outside."""
    values = np.append(magnitudes(dtype), [beyond(dtype), 2 * beyond(dtype)])
    marks = np.concatenate([values, (values[:-1] + values[1:]) / 2])
    with np.errstate(over="ignore"):
        exact = marks.astype(source.numpy)
    exact = exact[exact.astype(np.float64) == marks]
    bits = exact.view(f"u{source.itemsize}")
    beside = np.concatenate([bits, bits + bits.dtype.type(1), bits - (bits > 0)]).view(source.numpy)
    with np.errstate(over="ignore"):
        outside = np.array([np.nan, np.inf, 1e300, 1e-300, 2.0**-149, 1 + 2.0**-4 + 2.0**-40, 1 + 2.0**-3 - 2.0**-41])
        both = np.concatenate([beside, outside.astype(source.numpy)])
    return np.concatenate(
        [both, (both.view(f"u{source.itemsize}") ^ (1 << (8 * source.itemsize - 1))).view(source.numpy)]
    )


def _arguments(dtype: DType) -> Array:
    if dtype.is_narrow:
        # Of a byte, the bits above are nothing.
        return np.arange(256, dtype=np.uint8).view(dtype.numpy)
    return np.concatenate([edges(dtype), patterns(dtype, 5000)])


@cache
def casts(source: DType, target: str) -> dict[str, Kernel]:
    """The casts of a dtype to or from the narrow ones."""
    destinations = (*WIDE, *NARROW) if source.is_narrow else NARROW
    return kernels({str(destination): conversion(source, destination) for destination in destinations}, target)


def of_source(source: DType, *more: DType) -> Any:
    """Parameters of a test whose kernels are those that `casts` makes of this dtype: one process makes them once."""
    return pytest.param(source, *more, marks=pytest.mark.xdist_group(f"narrow casts {source}"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("source", "destination"),
    [
        of_source(source, destination)
        for source in (*NARROW, *WIDE)
        for destination in ((*WIDE, *NARROW) if source.is_narrow else NARROW)
    ],
)
def test_a_cast_is_the_references(source: DType, destination: DType, target: str) -> None:
    x = _arguments(source)
    with np.errstate(all="ignore"):
        expected = reference_cast(x, source, destination)
    actual = casts(source, target)[str(destination)](x)
    if source is destination:
        actual, expected = actual.view(np.uint8), expected.view(np.uint8)
    assert_same(actual, expected, x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wide", [*map(of_source, FLOATS)], ids=str)
@pytest.mark.parametrize("dtype", NARROW)
def test_every_code_is_what_ml_dtypes_says_and_comes_back(dtype: DType, wide: DType, target: str) -> None:
    x = codes(dtype)
    widened = cast(dtype, wide, target)(x)
    assert_same(widened, x.astype(wide.numpy), x)
    assert_same(casts(wide, target)[str(dtype)](widened), x, widened)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", [*map(of_source, FLOATS)], ids=str)
@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_every_boundary_is_rounded_to_the_nearest_and_ties_to_even(dtype: DType, source: DType, target: str) -> None:
    x = boundaries(dtype, source)
    actual = casts(source, target)[str(dtype)](x)
    assert_same(actual, nearest(dtype, x.astype(np.float64)), x)
    if source is not DType.FLOAT64:  # From float64, ml_dtypes rounds twice.
        known = ~np.isnan(x.astype(np.float32))
        with np.errstate(all="ignore"):
            assert_same(actual[known], x[known].astype(dtype.numpy), x[known])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", [*map(of_source, (DType.FLOAT16, DType.BFLOAT16))], ids=str)
@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_every_16_bit_float_is_rounded_as_ml_dtypes_does(dtype: DType, source: DType, target: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(source.numpy)
    with np.errstate(all="ignore"):
        x = x[~np.isnan(x)]
        assert_same(casts(source, target)[str(dtype)](x), x.astype(dtype.numpy), x)


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_a_float64_is_rounded_once(dtype: DType) -> None:
    values = magnitudes(dtype)
    middles = (values[:-1] + values[1:]) / 2
    for x in (middles + middles * 2.0**-50, middles - middles * 2.0**-50):
        assert_same(cast(DType.FLOAT64, dtype)(x), nearest(dtype, x), x)
        assert_same(reference_cast(x, DType.FLOAT64, dtype), nearest(dtype, x), x)


@pytest.mark.parametrize("dtype", NARROW_INTEGERS)
def test_integers_are_the_low_bits(dtype: DType) -> None:
    x = np.arange(-300, 300, dtype=np.int32)
    expected = (x & ((1 << dtype.bits) - 1)).astype(np.uint8).view(dtype.numpy)
    assert_same(cast(DType.INT32, dtype)(x), expected, x)
    assert_same(cast(DType.FLOAT32, dtype)((x + 0.25 * np.sign(x)).astype(np.float32)), expected, x)


@pytest.mark.parametrize("dtype", NARROW)
def test_a_bitcast_clears_what_is_above(dtype: DType) -> None:
    x = np.arange(256, dtype=np.uint8)
    low = x & np.uint8((1 << dtype.bits) - 1)
    for source, destination in ((DType.UINT8, dtype), (dtype, DType.UINT8), (dtype, DType.BOOL)):
        compiled = kernel(
            lambda _, values, source=source, to=destination: scalar.bitcast_same_width(source, to, values[0]),
            (source,),
            destination,
        )
        expected = low != 0 if destination.is_bool else low
        assert compiled(x.view(source.numpy)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", NARROW)
def test_a_constant_is_its_code(dtype: DType) -> None:
    def constant(element: float) -> Loop:
        return Loop(lambda _, __: scalar.constant(dtype, element), (DType.INT8,), dtype)

    compiled = kernels({f"k{place}": constant(float(element)) for place, element in enumerate(codes(dtype))})
    found = [each(np.zeros(1, np.int8)) for each in compiled.values()]
    assert_same(np.concatenate(found), codes(dtype))
