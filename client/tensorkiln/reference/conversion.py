"""Cast changes the type and keeps the value; bitcast keeps the bytes."""

from __future__ import annotations

import numpy as np

from ..dtypes import DType
from ..nodes import Bitcast, Cast
from .precision import Array, rounded
from .scope import Evaluator, Scope

_INT32, _INT64, _UINT64 = DType.INT32, DType.INT64, DType.UINT64


def evaluate_cast(node: Cast, scope: Scope) -> Array:
    return cast(scope.read(node.in_var), scope.dtype(node.in_var), node.target_dtype)


def cast(x: Array, source: DType, target: DType) -> Array:
    """Integers wrap, floats round once to nearest even, anything but 0 is true; float to integer is `truncated`.

    Narrow integers are the low bits of int8 or uint8. A narrow float beyond its range is infinite, or NaN where it has
    no infinity; float4_e2m1fn, which has neither, is the nearest it has, and 0 for NaN.
    """
    if source is target:
        return x
    if source.is_narrow:
        return cast(_codes(x, source).view(source.numpy).astype(source.wide.numpy), source.wide, target)
    if target.is_narrow:
        return _narrowed(x, source, target)
    if target.is_bool:
        return x != 0
    if source.is_float and target.is_integer:
        return truncated(x.astype(np.float64), target)
    if target is DType.BFLOAT16 and source.is_integer:
        return rounded(_float64_with_sticky_bit(x), target)
    if target.is_float and source.is_integer:
        # float64 first: a 64-bit integer that it cannot hold is far beyond float16, and the others take it directly.
        return (x.astype(np.float64) if target is DType.FLOAT16 else x).astype(target.numpy)
    return rounded(x, target) if source.is_float else x.astype(target.numpy)


def _narrowed(x: Array, source: DType, target: DType) -> Array:
    if not target.wide.is_float:
        return cast(x, source, target.wide).astype(target.numpy)
    if source.is_float:
        return rounded(x, target)
    return rounded(_float64_with_sticky_bit(x) if source.is_integer else x.astype(np.float64), target)


def truncated(x: Array, target: DType) -> Array:
    """float64 to integer: towards 0, NaN to 0.

    int32 and int64 saturate; int8, int16, uint8 and uint16 wrap a saturated int32; uint32 wraps a saturated int64;
    uint64 wraps a saturated int64 below 0 and saturates above.
    """
    if target is _UINT64:
        return np.where(x < 0, _saturated(x, _INT64).astype(np.uint64), _saturated(np.maximum(x, 0), _UINT64))
    if target in (_INT64, DType.UINT32):
        return _saturated(x, _INT64).astype(target.numpy)
    return _saturated(x, _INT32).astype(target.numpy)


def _saturated(x: Array, target: DType) -> Array:
    low, high = int(target.min), int(target.max)
    whole = np.trunc(x)
    # 2**63 - 1 is not a float64, so the upper bound is compared as the power of two above it.
    inside = (whole >= float(low)) & (whole < float(high + 1))
    exact = np.where(inside, whole, 0.0).astype(target.numpy)
    above, below = target.numpy.type(high), target.numpy.type(low)
    return np.where(whole >= float(high + 1), above, np.where(whole < float(low), below, exact))


def _float64_with_sticky_bit(x: Array) -> Array:
    # Beyond 53 bits an integer gives way to the middle of the 4096 it lies among: float64 holds that exactly, and a
    # rounding boundary of bfloat16 is a multiple of 2**44 there, so both lie on the same side of each.
    wide = x if x.dtype == np.uint64 else x.astype(np.int64)
    low = wide & 0xFFF
    middle = (wide - low).astype(np.float64) + np.where(low != 0, 2048.0, 0.0)
    is_exact = (wide >= -(1 << 53)) & (wide <= 1 << 53)
    return np.where(is_exact, wide.astype(np.float64), middle)


def evaluate_bitcast(node: Bitcast, scope: Scope) -> Array:
    """The bytes, little-endian, as `target_dtype`; the last dimension scales with the size of the element.

    Of a byte that holds less than 8 bits, those above are 0.
    """
    x = scope.read(node.in_var)
    for dtype in (scope.dtype(node.in_var), node.target_dtype):
        x = _codes(x, dtype) if dtype.is_narrow else x
    shape = scope.shape(node.out_var)
    if x.size == 0:
        return np.zeros(shape, node.target_dtype.numpy)
    if node.target_dtype.is_bool:
        return np.ndarray(shape, np.uint8, x.tobytes()) != 0
    return np.ndarray(shape, node.target_dtype.numpy, x.tobytes())


def _codes(x: Array, dtype: DType) -> Array:
    """The bytes of elements of a narrow dtype, without the bits above its own."""
    return x.view(np.uint8) & np.uint8((1 << dtype.bits) - 1)


EVALUATORS: dict[type, Evaluator] = {Cast: evaluate_cast, Bitcast: evaluate_bitcast}
