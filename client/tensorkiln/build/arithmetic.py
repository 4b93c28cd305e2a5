"""Arithmetic of two operands, and negation. The dtype of the result is the operands'; integers wrap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from .broadcast import broadcast, broadcast_shape
from .operands import Operand, adopt, alike, need

if TYPE_CHECKING:
    from .tensor import Tensor


def binop(op: str, a: Tensor, b: Tensor, dtype: DType | None = None) -> Tensor:
    """One `binop` node over broadcast operands of one dtype; `dtype` is the result's where it differs."""
    a, b = broadcast(a, b)
    shape = broadcast_shape(a.builder, [a.shape, b.shape])
    return a.builder.append("binop", dtype or a.dtype, shape, op=op, a_var=a.var, b_var=b.var)


def unary(op: str, x: Tensor) -> Tensor:
    """One `unary` node."""
    return x.builder.append("unary", x.dtype, x.shape, op=op, in_var=x.var)


def add(a: Operand, b: Operand) -> Tensor:
    """`a + b`; of two bools, whether either holds."""
    return binop("add", *alike(a, b))


def sub(a: Operand, b: Operand) -> Tensor:
    """`a - b`, not defined for bool."""
    left, right = alike(a, b)
    need(left, "-", floats=True, integers=True)
    return binop("sub", left, right)


def mul(a: Operand, b: Operand) -> Tensor:
    """`a * b`; of two bools, whether both hold."""
    return binop("mul", *alike(a, b))


def divide(a: Operand, b: Operand) -> Tensor:
    """`a / b` of floats, by IEEE 754. Integers divide with `//`, or as floats after a cast."""
    left, right = alike(a, b)
    need(left, "/", floats=True)
    return binop("fdiv", left, right)


def power(a: Operand, b: Operand) -> Tensor:
    """`a ** b`; for integers a negative exponent gives 0 unless the base is 1 or -1. The exponent 2 is a product."""
    left, right = alike(a, b)
    need(left, "**", floats=True, integers=True)
    if isinstance(b, int | float) and not isinstance(b, bool) and b == 2:
        return binop("mul", left, left)
    return binop("pow", left, right)


def maximum(a: Operand, b: Operand) -> Tensor:
    """The greater operand; NaN when either is NaN; +0 of -0 and +0."""
    return binop("max", *alike(a, b))


def minimum(a: Operand, b: Operand) -> Tensor:
    """The lesser operand; NaN when either is NaN; -0 of -0 and +0."""
    return binop("min", *alike(a, b))


def negate(x: Tensor) -> Tensor:
    """`-x`, not defined for bool; the least integer and unsigned integers wrap."""
    need(x, "negation", floats=True, integers=True)
    return unary("neg", x)


def absolute(x: Tensor) -> Tensor:
    """`|x|`; the least signed integer stays as it is, as in NumPy."""
    need(x, "abs", floats=True, integers=True)
    return x if x.dtype.is_unsigned else maximum(x, unary("neg", x))


def multiply_add(a: Tensor, b: Operand, c: Operand) -> Tensor:
    """`a * b + c`, which a target may round once instead of twice."""
    factor, addend = adopt(b, a), adopt(c, a)
    need(a, "multiply_add", floats=True, integers=True)
    shape = broadcast_shape(a.builder, [a.shape, factor.shape, addend.shape])
    a, factor, addend = broadcast(a, factor, addend)
    return a.builder.append("ternary", a.dtype, shape, op="mulacc", a_var=a.var, b_var=factor.var, c_var=addend.var)
