"""Bits of integers, truth values of bools, and reading the same bits as another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from ..expr import Dim, floordiv, mul
from .arithmetic import binop, unary
from .element_type import DTypeLike, element_type
from .operands import Operand, alike, need, require_tensor

if TYPE_CHECKING:
    from .tensor import Tensor


def bit_and(a: Operand, b: Operand) -> Tensor:
    """`a & b` of integers or bools."""
    return _bitwise("and", a, b)


def bit_or(a: Operand, b: Operand) -> Tensor:
    """`a | b` of integers or bools."""
    return _bitwise("or", a, b)


def bit_xor(a: Operand, b: Operand) -> Tensor:
    """`a ^ b` of integers or bools."""
    return _bitwise("xor", a, b)


def _bitwise(op: str, a: Operand, b: Operand) -> Tensor:
    left, right = alike(a, b)
    need(left, f"bitwise {op}", integers=True, bools=True)
    return binop(op, left, right)


def invert(x: Tensor) -> Tensor:
    """`~x`: every bit of an integer, or not of a bool."""
    need(x, "~", integers=True, bools=True)
    if x.dtype.is_bool:
        return unary("neg", x)
    return bit_xor(x, -1 if x.dtype.is_signed else int(x.dtype.max))


def shift_left(a: Operand, b: Operand) -> Tensor:
    """`a << b` of integers; 0 where the amount is negative or not less than the width."""
    left, right = alike(a, b)
    need(left, "<<", integers=True)
    return binop("shl", left, right)


def shift_right(a: Operand, b: Operand) -> Tensor:
    """`a >> b` of integers, arithmetic for signed ones; only sign bits remain where the amount is out of range."""
    left, right = alike(a, b)
    need(left, ">>", integers=True)
    return binop("shr", left, right)


def bitcast(x: Tensor, dtype: DTypeLike) -> Tensor:
    """The bytes of `x` read as another dtype, little-endian; another width scales the last dim, which must divide.

    A dtype below 8 bits has its bits at the low end of a byte, and zeros above.
    """
    require_tensor(x, "bitcast")
    target = element_type(dtype, x.builder.error)
    if target is x.dtype:
        return x
    shape = x.shape
    for dtype, other in ((x.dtype, target), (target, x.dtype)):
        if dtype.is_narrow and dtype.bits < 8 < 8 * other.itemsize:
            raise x.builder.error(f"{dtype} has {dtype.bits} bits: there is no bitcast between it and {other}")
    if target.itemsize != x.dtype.itemsize:
        if not shape or not target.itemsize or not x.dtype.itemsize:
            raise x.builder.error(f"a tensor of rank {len(shape)} and dtype {x.dtype} has no bitcast to {target}")
        shape = (*shape[:-1], _scaled(x, shape[-1], target))
    return x.builder.append("bitcast", target, shape, in_var=x.var, target_dtype=target.value)


def _scaled(x: Tensor, last: Dim, target: DType) -> Dim:
    length = mul(last, x.dtype.itemsize)
    scaled = floordiv(length, target.itemsize)
    if mul(scaled, target.itemsize) != length:
        raise x.builder.error(f"the last dimension, {last} of {x.dtype}, is not a whole number of {target}")
    return scaled
