"""Sums and products of 16-bit floats: accumulated in float32 and rounded once, whatever order they run in."""

from __future__ import annotations

from typing import Any

from dialect.mlir import ir
from tensorkiln.dtypes import DType
from tensorkiln.nodes import ReduceKind

from . import builder


def decompose_reduce_axis(op: Any) -> ir.Value | None:
    """reduce(x) -> cast(reduce(cast(x, float32))) for float16 and bfloat16; None for every other reduction"""
    dtype, kind = op.tensor.dtype, op.reduce_op_kind
    if dtype not in (DType.FLOAT16, DType.BFLOAT16) or kind is ReduceKind.MAX:
        return None
    wide = builder.cast(op.operands[0], DType.FLOAT32)
    return builder.cast(builder.reduce(kind, wide, op.axes, op.tensor.shape), dtype)


NARROW_SUMS = {"kiln.reduce_axis": decompose_reduce_axis}
