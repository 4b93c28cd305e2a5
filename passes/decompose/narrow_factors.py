"""Widen the integer factors of products as late as possible: what is moved and packed before then is smaller.

A factor is often an 8-bit integer without its zero point, padded and rearranged. In 16 bits the difference is exact,
and vector units multiply 16-bit integers faster than 32-bit ones.
"""

from __future__ import annotations

from typing import Any, Final

from dialect.conversion import CastOp
from dialect.elementwise import BinopOp
from dialect.mlir import ir
from dialect.types import type_of
from tensorkiln.dtypes import DType
from tensorkiln.nodes import BinopKind

from . import builder

_BYTES: Final = (DType.INT8, DType.UINT8)
_NARROW: Final = (*_BYTES, DType.INT16)
_WIDE: Final = DType.INT32
"""A contraction converts a factor as it reads it only if the conversion is exact, which that of negative numbers to
uint32 is not."""


def decompose_binop(op: Any) -> ir.Value | None:
    """cast(a) - cast(b) -> cast(cast(a, int16) - cast(b, int16)) for bytes, and so for sums; None for other ops"""
    if op.op not in (BinopKind.ADD, BinopKind.SUB) or op.tensor.dtype is not _WIDE:
        return None
    sources = [_widened(operand) for operand in op.operands]
    if any(source is None or type_of(source).dtype not in _BYTES for source in sources) or not _is_factor(op):
        return None
    short = [builder.cast(source, DType.INT16) for source in sources if source is not None]
    made = BinopOp.make(short, builder.typed(short[0], op.tensor.shape), op=op.op).results[0]
    return builder.cast(made, op.tensor.dtype)


def decompose_move(op: Any) -> ir.Value | None:
    """move(cast(x)) -> cast(move(x)); None for an op that does not move a widened factor"""
    source = _widened(op.operands[0])
    if source is None or type_of(source).dtype not in _NARROW or not _is_factor(op):
        return None
    return builder.cast(builder.moved(op, source), op.tensor.dtype)


def _widened(value: ir.Value) -> ir.Value | None:
    """The operand of the widening cast that made the value."""
    owner = value.owner
    return owner.operands[0] if isinstance(owner, CastOp) and type_of(value).dtype is _WIDE else None


def _is_factor(op: Any) -> bool:
    """Whether all uses of the result are factors, though it may be moved or made smaller by a zero point before."""
    users = [use.owner for use in op.operation.results[0].uses]
    return bool(users) and all(map(_takes_factor, users))


def _takes_factor(user: Any) -> bool:
    if isinstance(user, BinopOp):
        return user.op is BinopKind.MUL or (user.op in (BinopKind.ADD, BinopKind.SUB) and _is_factor(user))
    return user.operation.name in builder.MOVES and _is_factor(user)


NARROW_FACTORS: Final = {"kiln.binop": decompose_binop, **dict.fromkeys(builder.MOVES, decompose_move)}
