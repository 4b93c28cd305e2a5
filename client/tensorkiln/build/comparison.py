"""Comparisons: bool results, false wherever a NaN is compared except for `!=`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from .arithmetic import binop, unary
from .operands import Operand, alike

if TYPE_CHECKING:
    from .tensor import Tensor


def less(a: Operand, b: Operand) -> Tensor:
    """`a < b`."""
    left, right = alike(a, b)
    return binop("cmplt", left, right, DType.BOOL)


def greater(a: Operand, b: Operand) -> Tensor:
    """`a > b`."""
    return less(b, a)


def not_equal(a: Operand, b: Operand) -> Tensor:
    """`a != b`; true where either is NaN."""
    left, right = alike(a, b)
    return binop("cmpne", left, right, DType.BOOL)


def equal(a: Operand, b: Operand) -> Tensor:
    """`a == b`."""
    return unary("neg", not_equal(a, b))


def less_equal(a: Operand, b: Operand) -> Tensor:
    """`a <= b`."""
    left, right = alike(a, b)
    if left.dtype.is_float:
        return binop("or", less(left, right), equal(left, right))
    return unary("neg", less(right, left))


def greater_equal(a: Operand, b: Operand) -> Tensor:
    """`a >= b`."""
    return less_equal(b, a)


def is_nan(x: Tensor) -> Tensor:
    """Where `x` is NaN."""
    return not_equal(x, x)
