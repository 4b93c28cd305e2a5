"""Rounding floats to whole numbers: the dtype and the sign of zero stay, and so do values too large for a fraction.

All follow from `trunc`, and are exact: what a float with a fraction is truncated to, and a step from there, are floats
of its dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arithmetic import absolute, add, binop, mul, sub, unary
from .bits import bit_and, bit_or
from .comparison import equal, greater, less, not_equal
from .operands import need
from .selection import where

if TYPE_CHECKING:
    from .tensor import Tensor


def trunc(x: Tensor) -> Tensor:
    """`x` rounded toward zero."""
    need(x, "trunc", floats=True)
    return unary("trunc", x)


def floor(x: Tensor) -> Tensor:
    """`x` rounded down."""
    need(x, "floor", floats=True)
    whole = unary("trunc", x)
    return where(greater(whole, x), sub(whole, 1.0), whole)


def ceil(x: Tensor) -> Tensor:
    """`x` rounded up."""
    need(x, "ceil", floats=True)
    whole = unary("trunc", x)
    return where(less(whole, x), add(whole, 1.0), whole)


def rint(x: Tensor) -> Tensor:
    """`x` rounded to the nearest whole number, halves to the even one."""
    need(x, "round", floats=True)
    whole = unary("trunc", x)
    rest = absolute(sub(x, whole))
    half = mul(whole, 0.5)
    is_odd = not_equal(half, unary("trunc", half))
    is_farther = bit_or(greater(rest, 0.5), bit_and(equal(rest, 0.5), is_odd))
    step = where(less(x, 0.0), x.builder.scalar(-1.0, x.dtype), 1.0)
    return where(is_farther, add(whole, step), whole)


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 by the sign of `x`; NaN stays NaN, and a zero of a float stays as it is."""
    need(x, "sign", floats=True, integers=True)
    one = x.builder.scalar(1, x.dtype)
    if x.dtype.is_unsigned:
        return binop("min", x, one)
    negative_or_rest = where(less(x, 0), x.builder.scalar(-1, x.dtype), x)
    return where(greater(x, 0), one, negative_or_rest)
