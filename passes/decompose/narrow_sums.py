"""Widen narrow sums and products to types that lose nothing, and remove reductions over no axes.

Sums of 16-bit floats are accumulated in float32 and rounded once, in whatever order they run. Sums of products of 8-bit
and 16-bit integers are computed in 32 bits, which vector units multiply; the low bits are those of the narrow sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dialect.elementwise import BinopOp
from dialect.mlir import ir
from dialect.types import type_of
from tensorkiln.dtypes import DType
from tensorkiln.nodes import BinopKind, ReduceKind

from . import builder

_INTEGERS = {
    DType.INT8: DType.INT32,
    DType.INT16: DType.INT32,
    DType.UINT8: DType.UINT32,
    DType.UINT16: DType.UINT32,
}


def decompose_reduce_axis(op: Any) -> ir.Value | None:
    """reduce(x) -> cast(reduce(cast(x, wide))), or x for no axes; None for a reduction that stays"""
    if not op.axes:
        return op.operands[0]
    dtype, kind = op.tensor.dtype, op.reduce_op_kind
    if dtype.is_half:
        wide = builder.cast(op.operands[0], DType.FLOAT32)
    elif dtype in _INTEGERS and kind is ReduceKind.SUM and (factors := _factors(op.operands[0])):
        wide = builder.binop(BinopKind.MUL, *(builder.cast(factor, _INTEGERS[dtype]) for factor in factors))
    else:
        return None
    return builder.cast(builder.reduce(kind, wide, op.axes, op.tensor.shape), dtype)


def _factors(value: ir.Value) -> Sequence[ir.Value]:
    """The factors of a product of two tensors; empty for anything else."""
    product = value.owner
    if not isinstance(product, BinopOp) or product.op is not BinopKind.MUL:
        return ()
    is_of_tensors = all(type_of(operand).shape == type_of(value).shape for operand in product.operands)
    return tuple(product.operands) if is_of_tensors else ()


NARROW_SUMS = {"kiln.reduce_axis": decompose_reduce_axis}
