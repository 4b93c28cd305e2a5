"""Rounding floats to whole numbers: the dtype and the sign of zero stay, and so do values too large for a fraction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from .arithmetic import absolute, add, binop, mul, sub
from .bits import bit_and, bit_or
from .comparison import equal, greater, less, not_equal
from .conversion import cast
from .operands import need
from .selection import where

if TYPE_CHECKING:
    from .tensor import Tensor

_FRACTION_BITS = {DType.FLOAT16: 10, DType.BFLOAT16: 7, DType.FLOAT32: 23, DType.FLOAT64: 52}


def _whole(x: Tensor) -> Tensor:
    """`x` truncated, as an integer; meaningful where `x` has a fraction at all."""
    return cast(x, DType.INT64 if x.dtype is DType.FLOAT64 else DType.INT32)


def _finish(x: Tensor, whole: Tensor) -> Tensor:
    signed = where(equal(whole, 0.0), mul(x, 0.0), whole)
    return where(less(absolute(x), float(1 << _FRACTION_BITS[x.dtype])), signed, x)


def trunc(x: Tensor) -> Tensor:
    """`x` rounded toward zero."""
    need(x, "trunc", floats=True)
    return _finish(x, cast(_whole(x), x.dtype))


def floor(x: Tensor) -> Tensor:
    """`x` rounded down."""
    need(x, "floor", floats=True)
    whole = cast(_whole(x), x.dtype)
    return _finish(x, where(greater(whole, x), sub(whole, 1.0), whole))


def ceil(x: Tensor) -> Tensor:
    """`x` rounded up."""
    need(x, "ceil", floats=True)
    whole = cast(_whole(x), x.dtype)
    return _finish(x, where(less(whole, x), add(whole, 1.0), whole))


def rint(x: Tensor) -> Tensor:
    """`x` rounded to the nearest whole number, halves to the even one."""
    need(x, "round", floats=True)
    whole = _whole(x)
    rest = sub(x, cast(whole, x.dtype))
    is_odd = not_equal(bit_and(whole, 1), 0)
    away = bit_or(greater(absolute(rest), 0.5), bit_and(equal(absolute(rest), 0.5), is_odd))
    step = where(less(rest, 0.0), whole.builder.scalar(-1, whole.dtype), 1)
    return _finish(x, cast(where(away, add(whole, step), whole), x.dtype))


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 by the sign of `x`; NaN stays NaN, and a zero of a float stays as it is."""
    need(x, "sign", floats=True, integers=True)
    one = x.builder.scalar(1, x.dtype)
    if x.dtype.is_unsigned:
        return binop("min", x, one)
    negative_or_rest = where(less(x, 0), x.builder.scalar(-1, x.dtype), x)
    return where(greater(x, 0), one, negative_or_rest)
