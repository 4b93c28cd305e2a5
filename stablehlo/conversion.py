"""Conversion of element types, reduction of precision, and bitcasts."""

from __future__ import annotations

from typing import Final

from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.dtypes import DType

from .op import Op
from .table import Translator
from .value import Value

_SIGNIFICAND: Final = {DType.FLOAT16: 10, DType.BFLOAT16: 7, DType.FLOAT32: 23, DType.FLOAT64: 52}
"""The stored bits of the significand."""


def _convert(op: Op) -> Value:
    return convert(op.tensor(0), op.result().dtype)


def convert(x: Tensor, dtype: DType) -> Tensor:
    """Cast `x`. Floats outside the range of an integer type saturate, and NaN becomes 0."""
    if not (x.dtype.is_float and dtype.is_integer) or dtype in (DType.INT32, DType.INT64):
        return x.cast(dtype)
    # float64 represents all limits of integers up to 32 bits, float32 those up to 16 bits.
    wide = x.cast(DType.FLOAT64 if dtype.bits >= 32 else DType.FLOAT32) if x.dtype is not DType.FLOAT64 else x
    if dtype is DType.UINT64:
        return build.maximum(wide, 0.0).cast(dtype)
    return build.minimum(build.maximum(wide, float(dtype.min)), float(dtype.max)).cast(dtype)


def _bitcast(op: Op) -> Value:
    x, wanted = op.tensor(0), op.result()
    if DType.BOOL in (x.dtype, wanted.dtype) and x.dtype is not wanted.dtype:
        op.fail("the bits of i1 are not read as another type")
    own, other = x.dtype.itemsize, wanted.dtype.itemsize
    if own > other and not op.mode.is_lifted:
        return x.reshape([*x.shape, 1]).bitcast(wanted.dtype)
    if own < other and not op.mode.is_lifted:
        return x.bitcast(wanted.dtype).reshape(list(x.shape[:-1]))
    return x.bitcast(wanted.dtype) if own == other else op.fail("inside this region the width of a type stays")


def _reduce_precision(op: Op) -> Value:
    x = op.tensor(0)
    exponent, significand = op.integer("exponent_bits"), op.integer("mantissa_bits")
    kind = x.dtype
    stored = _SIGNIFICAND[kind]
    own_exponent = kind.bits - 1 - stored
    bits = x.bitcast(DType(f"uint{kind.bits}"))
    result = bits
    if significand < stored:
        dropped = stored - significand
        last = (result >> dropped) & 1
        # Round to nearest, ties to even: add half of the last kept bit, less one if that bit is even.
        result = (result + (last + ((1 << (dropped - 1)) - 1))) & (int(bits.dtype.max) ^ ((1 << dropped) - 1))
    if exponent < own_exponent:
        bias, reduced = (1 << (own_exponent - 1)) - 1, (1 << (exponent - 1)) - 1
        sign = result & (1 << (kind.bits - 1))
        power = result & (((1 << own_exponent) - 1) << stored)
        infinite = sign | (((1 << own_exponent) - 1) << stored)
        result = build.where(power > ((bias + reduced) << stored), infinite, result)
        result = build.where(power < ((bias - reduced + 1) << stored), sign, result)
    return build.where(build.is_nan(x), x, result.bitcast(kind))


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.convert": _convert,
    "stablehlo.reduce_precision": _reduce_precision,
}
