"""How far a result may be from the reference, and the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from passes.schedule.sum_blocks import ROW_TERMS
from tensorkiln.dtypes import DType

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A float result may be `ulps` representable steps away, or `absolute` by value; NaN is met by any NaN.

    Zeros differ by sign only where `signed_zeros` is false. Integers and bool are always exact.
    """

    ulps: int = 0
    absolute: float = 0.0
    signed_zeros: bool = True

    def widened(self, other: Tolerance) -> Tolerance:
        """What allows whatever either allows."""
        return Tolerance(
            max(self.ulps, other.ulps),
            max(self.absolute, other.absolute),
            self.signed_zeros and other.signed_zeros,
        )


EXACT = Tolerance()

EPSILON = {DType.FLOAT16: 2.0**-10, DType.BFLOAT16: 2.0**-7, DType.FLOAT32: 2.0**-23, DType.FLOAT64: 2.0**-52}
"""The step of each float format at 1."""

_WIDE = (DType.FLOAT32, DType.FLOAT64)
_ROUNDED_ONCE = Tolerance(ulps=1)
_OPERATIONS: dict[str, dict[bool, Tolerance]] = {
    # By whether the dtype is one of _WIDE; a 16-bit result is computed in float32 and rounded: 1 step off at most.
    "exp2": {True: Tolerance(ulps=2), False: _ROUNDED_ONCE},
    "log2": {True: Tolerance(ulps=2), False: _ROUNDED_ONCE},
    "sin": {True: Tolerance(ulps=2), False: _ROUNDED_ONCE},
    "pow": {True: Tolerance(ulps=16), False: _ROUNDED_ONCE},
}


def tolerance(operation: str, dtype: DType) -> Tolerance:
    """What `operation` (the name of an op, or of a node kind) allows on operands of ordinary size.

    Sums and fused products need the size of their data besides: `sum_tolerance`. Everything that is not listed is
    exact: IEEE arithmetic rounds in one way only.
    """
    return _OPERATIONS.get(operation, {}).get(dtype in _WIDE, EXACT) if dtype.is_float else EXACT


def sum_tolerance(dtype: DType, terms: int, greatest: float) -> Tolerance:
    """For a float sum of `terms` values up to `greatest`, in any order, in float32 or better, then rounded to `dtype`.

    Each addition loses at most half a step of a partial sum. Within a block that does not exceed the block's terms *
    greatest, and adding up what the blocks come to loses no more than the blocks do.
    """
    if not dtype.is_float:
        return EXACT
    step = EPSILON[DType.FLOAT64 if dtype is DType.FLOAT64 else DType.FLOAT32]
    return Tolerance(ulps=1, absolute=step * greatest * terms * min(terms, 2 * ROW_TERMS) / 2, signed_zeros=False)


def compare(actual: Any, expected: Any, allowed: Tolerance = EXACT) -> None:
    """AssertionError, with the first place that differs, unless `actual` is `expected` within what is allowed.

    Takes two arrays, or two sequences of arrays as a program and the reference return them.
    """
    if isinstance(expected, np.ndarray):
        _compare_arrays(actual, expected, allowed, "")
        return
    results: Sequence[Array] = tuple(actual)
    wanted: Sequence[Array] = tuple(expected)
    assert len(results) == len(wanted), f"{len(results)} outputs, expected {len(wanted)}"
    for place, (mine, other) in enumerate(zip(results, wanted, strict=True)):
        _compare_arrays(mine, other, allowed, f"output {place}: ")


def _compare_arrays(actual: Array, expected: Array, allowed: Tolerance, where: str) -> None:
    assert actual.dtype == expected.dtype, f"{where}dtype {actual.dtype}, expected {expected.dtype}"
    assert actual.shape == expected.shape, f"{where}shape {actual.shape}, expected {expected.shape}"
    dtype = DType.from_numpy(expected.dtype)
    if dtype is DType.UNIT or not expected.size:
        return
    if dtype.is_narrow:
        wrong = _codes_differ(actual, expected)
    else:
        wrong = _differs(actual, expected, allowed) if dtype.is_float else actual != expected
    if np.any(wrong):
        place = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
        mine, other = np.atleast_1d(actual)[place], np.atleast_1d(expected)[place]
        raise AssertionError(
            f"{where}{mine!r} at {place}, expected {other!r}; {int(np.sum(wrong))} of {expected.size} differ by more "
            f"than {allowed}"
        )


def _codes_differ(actual: Array, expected: Array) -> Array:
    mine, other = (np.ascontiguousarray(array).view(np.uint8).reshape(array.shape) for array in (actual, expected))
    with np.errstate(all="ignore"):
        both_nan = np.isnan(actual.astype(np.float32)) & np.isnan(expected.astype(np.float32))
    return (mine != other) & ~both_nan


def _differs(actual: Array, expected: Array, allowed: Tolerance) -> Array:
    steps = _steps(actual, expected)
    with np.errstate(all="ignore"):
        mine, other = actual.astype(np.longdouble), expected.astype(np.longdouble)
        near = (steps <= allowed.ulps) | (np.abs(mine - other) <= allowed.absolute)
        if allowed.signed_zeros:
            near &= ~((mine == 0) & (other == 0)) | (np.signbit(mine) == np.signbit(other))
        return ~np.where(np.isnan(mine) | np.isnan(other), np.isnan(mine) & np.isnan(other), near)


def _steps(actual: Array, expected: Array) -> Array:
    # The bit patterns of floats, taken as sign and magnitude, count the representable values: infinity follows the
    # greatest finite one, and the zeros coincide.
    mine, other = _ordered(actual), _ordered(expected)
    with np.errstate(over="ignore"):
        apart = np.maximum(mine, other) - np.minimum(mine, other)
    # Values of opposite sign near both ends of the range are more than 2**63 apart and wrap below zero.
    return np.where(apart < 0, np.iinfo(np.int64).max, apart)


def _ordered(values: Array) -> Array:
    bits = np.ascontiguousarray(values).view(f"i{values.dtype.itemsize}").reshape(values.shape).astype(np.int64)
    magnitude = bits & ((1 << (8 * values.dtype.itemsize - 1)) - 1)
    return np.where(bits < 0, -magnitude, magnitude)
