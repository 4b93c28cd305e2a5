"""The precision in which the reference computes, and rounding of results to their dtype: once, half to even."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..dtypes import DType

Array = npt.NDArray[Any]

_DROPPED = np.uint64((1 << 42) - 1)
_STICKY = np.uint64(1 << 42)


def arithmetic(dtype: DType) -> np.dtype[Any]:
    """The dtype in which `+ - * /`, square root and fmod are computed.

    float32 for the 16-bit floats: its 24 bits are 2 * 11 + 2, so the second rounding changes nothing (Figueroa 1995).
    """
    return dtype.accumulator.numpy


def accumulator(dtype: DType) -> np.dtype[Any]:
    """The accumulator dtype of sums and products: float64 for floats of 16 and 32 bits, long double for float64.

    Integers and bool accumulate in themselves.
    """
    if not dtype.is_float:
        return dtype.numpy
    return np.dtype(np.longdouble) if dtype is DType.FLOAT64 else np.dtype(np.float64)


def rounded(values: Array, dtype: DType) -> Array:
    """Float values in `dtype`, each rounded once."""
    if not (dtype is DType.BFLOAT16 or dtype.is_narrow):
        return values.astype(dtype.numpy)
    single = _folded(values.astype(np.float64)) if values.dtype.itemsize > 4 else values.astype(np.float32)
    if dtype is DType.FLOAT4_E2M1FN:
        # It has no NaN, and ml_dtypes gives a zero of the other sign, which a NaN has at random.
        single = np.where(np.isnan(single), np.float32(0), single)
    return single.astype(dtype.numpy)


def _folded(values: Array) -> Array:
    """float32 that rounds to bfloat16, or to less, as float64 does."""
    # A plain cast passes through float32 and rounds twice: 1 + 2**-8 + 2**-40 would fall to 1. Folding the bits that
    # are beyond bfloat16's and its rounding bit into one sticky bit makes the passage through float32 exact.
    bits = values.view(np.uint64)
    folded = np.where((bits & _DROPPED) != 0, (bits & ~_DROPPED) | _STICKY, bits)
    return folded.view(np.float64).astype(np.float32)
