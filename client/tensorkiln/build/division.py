"""Division and remainder that round down, as Python's do, composed of the truncating nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arithmetic import add, binop, divide, sub
from .bits import bit_and, bit_xor
from .comparison import equal, greater, less, not_equal
from .operands import Operand, alike, need
from .rounding import floor
from .selection import where

if TYPE_CHECKING:
    from .tensor import Tensor


def truncating_divide(a: Operand, b: Operand) -> Tensor:
    """The quotient of integers rounded toward zero; 0 where the divisor is 0."""
    left, right = alike(a, b)
    need(left, "truncating division", integers=True)
    return binop("idiv", left, right)


def truncating_remainder(a: Operand, b: Operand) -> Tensor:
    """The remainder with the sign of the dividend, C's `%` and `fmod`; the dividend where an integer divisor is 0."""
    left, right = alike(a, b)
    need(left, "truncating remainder", floats=True, integers=True)
    return binop("mod", left, right)


def floor_divide(a: Operand, b: Operand) -> Tensor:
    """`a // b`: the quotient rounded down. Where an integer divisor is 0 the quotient is 0; floats follow NumPy, but
    for the sign of a zero.
    """
    left, right = alike(a, b)
    need(left, "//", floats=True, integers=True)
    if left.dtype.is_float:
        return _float_floor_divide(left, right)
    quotient = binop("idiv", left, right)
    if left.dtype.is_unsigned:
        return quotient
    return where(_rounds_up(binop("mod", left, right), right, b), sub(quotient, 1), quotient)


def floor_remainder(a: Operand, b: Operand) -> Tensor:
    """`a % b`: the remainder with the sign of the divisor. Where an integer divisor is 0 it is `a`.

    The sign of a zero remainder of floats is not defined.
    """
    left, right = alike(a, b)
    need(left, "%", floats=True, integers=True)
    remainder = binop("mod", left, right)
    if left.dtype.is_unsigned:
        return remainder
    if left.dtype.is_float:
        return where(_opposed(remainder, right), add(remainder, right), remainder)
    return where(_rounds_up(remainder, right, b), add(remainder, right), remainder)


def _rounds_up(remainder: Tensor, divisor: Tensor, literal: Operand) -> Tensor:
    """Where truncation of a signed division rounded up: the remainder and the divisor have opposite signs."""
    if isinstance(literal, int) and literal > 0:
        return less(remainder, 0)
    opposed = less(bit_xor(remainder, divisor), 0)
    return bit_and(bit_and(opposed, not_equal(remainder, 0)), not_equal(divisor, 0))


def _opposed(remainder: Tensor, divisor: Tensor) -> Tensor:
    return bit_and(not_equal(remainder, 0.0), bit_xor(less(remainder, 0.0), less(divisor, 0.0)))


def _float_floor_divide(a: Tensor, b: Tensor) -> Tensor:
    """NumPy's `floor_divide`: the exact multiple nearest below, from the remainder rather than from `floor(a / b)`."""
    remainder = binop("mod", a, b)
    multiple = divide(sub(a, remainder), b)
    multiple = where(_opposed(remainder, b), sub(multiple, 1.0), multiple)
    below = floor(multiple)
    nearest = where(greater(sub(multiple, below), 0.5), add(below, 1.0), below)
    return where(equal(b, 0.0), divide(a, b), nearest)
