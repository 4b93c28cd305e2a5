"""multi and buffer_view in terms of movement."""

from __future__ import annotations

from typing import Any

from dialect.conversion import BitcastOp
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
    """A window of another dtype: the elements that hold it, reinterpreted; None for one of the buffer's own dtype"""
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


STORAGE = {"kiln.multi": decompose_multi, "kiln.buffer_view": decompose_buffer_view}
