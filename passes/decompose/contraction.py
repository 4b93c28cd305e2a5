"""contract and wmma as sums of products of expanded operands, the form in which graphs express a contraction."""

from __future__ import annotations

from typing import Any

from dialect.mlir import ir
from dialect.types import type_of
from tensorkiln.dtypes import DType
from tensorkiln.nodes import BinopKind, ReduceKind

from . import builder


def decompose_contract(op: Any) -> ir.Value:
    """numpy.tensordot(a, b, pairs of axes)"""
    left, right = op.operands
    pairs = op.contraction_axes
    left_axes, right_axes = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    left_kept = [axis for axis in range(type_of(left).rank) if axis not in left_axes]
    right_kept = [axis for axis in range(type_of(right).rank) if axis not in right_axes]
    moved_left = builder.permute(left, [*left_kept, *left_axes])
    moved_right = builder.permute(right, [*right_kept, *right_axes])
    wide = op.tensor.dtype.accumulator
    return builder.cast(_product(moved_left, moved_right, len(pairs), op.tensor.shape, wide), op.tensor.dtype)


def decompose_wmma(op: Any) -> ir.Value:
    """a (m x k) @ b (k x n) + c (m x n), computed in the dtype of c, and rounded once"""
    dtype, shape = op.tensor.dtype, op.tensor.shape
    extents = ((op.m, op.k), (op.k, op.n), shape)
    a, b, c = (_of_shape(operand, wanted) for operand, wanted in zip(op.operands, extents, strict=True))
    wide = dtype.accumulator
    product = _product(a, builder.permute(builder.cast(b, wide), (1, 0)), 1, shape, wide)
    return builder.cast(builder.binop(BinopKind.ADD, product, builder.cast(c, wide)), dtype)


def _of_shape(value: ir.Value, shape: builder.Shape) -> ir.Value:
    """`value` with a shape that always equals its own at run time, though written differently."""
    if type_of(value).shape == tuple(shape):
        return value
    return builder.shrink(value, [(0, extent) for extent in shape])


def _product(left: ir.Value, right: ir.Value, depth: int, result: builder.Shape, dtype: DType) -> ir.Value:
    """The sum over the last `depth` dimensions of both in `dtype`; the other dimensions of left come before those of
    right.
    """
    left, right = builder.cast(left, dtype), builder.cast(right, dtype)
    left_shape, right_shape = type_of(left).shape, type_of(right).shape
    rows, columns = len(left_shape) - depth, len(right_shape) - depth
    whole = (*left_shape[:rows], *right_shape[:columns], *left_shape[rows:])
    wide_left = builder.reshape(left, (*left_shape[:rows], *[1] * columns, *left_shape[rows:]))
    wide_right = builder.reshape(right, (*[1] * rows, *right_shape))
    product = builder.binop(BinopKind.MUL, builder.expand(wide_left, whole), builder.expand(wide_right, whole))
    axes = range(rows + columns, len(whole))
    return builder.reduce(ReduceKind.SUM, product, list(axes), result) if depth else builder.reshape(product, result)


CONTRACTION = {"kiln.contract": decompose_contract, "kiln.wmma": decompose_wmma}
