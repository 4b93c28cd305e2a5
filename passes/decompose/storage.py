"""multi, buffer_view, full assignments and long cats in terms of movement."""

from __future__ import annotations

from typing import Any

from dialect.conversion import BitcastOp
from dialect.memory import ContiguousOp
from dialect.mlir import ir
from dialect.movement import CatOp
from dialect.types import type_of
from tensorkiln import expr

from . import builder


def decompose_multi(op: Any) -> ir.Value:
    """The first shard when replicated, else the real shards joined"""
    shards = list(op.operands)
    axis = op.axis
    if axis is None:
        return shards[0]
    real = [shard for shard, is_real in zip(shards, op.real_mask, strict=True) if is_real]
    return real[0] if len(real) == 1 else CatOp.make(real, op.tensor, axis=axis).results[0]


def decompose_buffer_view(op: Any) -> ir.Value | None:
    """A window of another dtype: the elements that contain it, reinterpreted; None for the buffer's own dtype"""
    buffer = op.operands[0]
    known, wanted = type_of(buffer), op.tensor
    if known.dtype is wanted.dtype:
        return None
    flat = builder.reshape(buffer, (expr.product(known.shape),))
    size = expr.product(wanted.shape)
    taken = expr.ceildiv(expr.mul(size, wanted.dtype.itemsize), known.dtype.itemsize)
    window = builder.shrink(flat, [(op.offset, expr.add(op.offset, taken))])
    held = expr.floordiv(expr.mul(taken, known.dtype.itemsize), wanted.dtype.itemsize)
    cast = BitcastOp.make([window], builder.typed(window, (held,), wanted.dtype)).results[0]
    return builder.reshape(builder.shrink(cast, [(0, size)]) if held != size else cast, wanted.shape)


def decompose_assign(op: Any) -> ir.Value | None:
    """The source if it replaces the whole target, whose old value is then dead; None for a partial update"""
    source, span = op.operands[1], op.range
    known, whole = type_of(source), op.tensor
    if span is None:
        return source if known == whole else None
    return builder.reshape(source, whole.shape) if list(span) == [0, expr.product(whole.shape)] else None


MAX_PARTS = 16
"""Most parts of a cat that a kernel computes element by element, with a select over all parts for each."""


def decompose_cat(op: Any) -> ir.Value | None:
    """Drop empty parts; join and store groups if there are more than 16 parts; None for a cat that stays"""
    whole, axis = list(op.operands), op.axis
    parts = [part for part in whole if expr.product(type_of(part).shape) != 0]
    if not parts:
        return builder.reshape(whole[0], op.tensor.shape)
    if len(parts) == 1:
        return parts[0]
    if len(parts) == len(whole) <= MAX_PARTS:
        return None
    while len(parts) > MAX_PARTS:
        parts = [_joined(parts[first : first + MAX_PARTS], axis) for first in range(0, len(parts), MAX_PARTS)]
    return CatOp.make(parts, op.tensor, axis=axis).results[0]


def _joined(parts: list[ir.Value], axis: int) -> ir.Value:
    if len(parts) == 1:
        return parts[0]
    shapes = [type_of(part).shape for part in parts]
    length = expr.add(*(shape[axis] for shape in shapes))
    kind = builder.typed(parts[0], (*shapes[0][:axis], length, *shapes[0][axis + 1 :]))
    return ContiguousOp.make([CatOp.make(parts, kind, axis=axis).results[0]], kind).results[0]


STORAGE = {
    "kiln.assign": decompose_assign,
    "kiln.buffer_view": decompose_buffer_view,
    "kiln.cat": decompose_cat,
    "kiln.multi": decompose_multi,
}
