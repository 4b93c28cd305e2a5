"""Reductions, contractions and matrix tiles."""

from typing import Any

from tensorkiln.nodes import ReduceKind

from .fields import enum, integer, integer_pairs, integers
from .mlir import ext
from .operation import KilnOp
from .rules import distinct_axes, has_rank, same_dtype, same_shape
from .types import type_of


class ReduceAxisOp(KilnOp, name="reduce_axis", traits=[ext.Pure]):
    """Reduces `axes`; `keepdims` tells whether they stay with size 1."""

    source: ext.Operand[Any]
    reduce_op_kind = enum(ReduceKind)
    axes = integers()
    result: ext.Result[Any]

    @property
    def keepdims(self) -> bool:
        return type_of(self.operands[0]).rank == self.tensor.rank

    def problem(self) -> str | None:
        (source,), result, axes = self.inputs, self.tensor, self.axes
        if distinct_axes(axes, source.rank, "axes"):
            return distinct_axes(axes, source.rank, "axes")
        kept = [1 if axis in axes else dim for axis, dim in enumerate(source.shape)]
        dropped = [dim for axis, dim in enumerate(source.shape) if axis not in axes]
        return same_dtype(source, result) or same_shape(kept if self.keepdims else dropped, result.shape)


class WmmaOp(KilnOp, name="wmma", traits=[ext.Pure]):
    """`a (m x k) @ b (k x n) + c (m x n)`, in the dtype of c."""

    a: ext.Operand[Any]
    b: ext.Operand[Any]
    c: ext.Operand[Any]
    m = integer()
    n = integer()
    k = integer()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (a, b, c), result = self.inputs, self.tensor
        ranks = (has_rank(tensor, 2, "an operand") for tensor in (a, b, c))
        return next(filter(None, ranks), None) or same_dtype(a, b) or same_dtype(c, result)


class ContractOp(KilnOp, name="contract", traits=[ext.Pure]):
    """The tensor product of a and b, summed over the pairs (axis of a, axis of b)."""

    a: ext.Operand[Any]
    b: ext.Operand[Any]
    contraction_axes = integer_pairs()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (a, b), result, pairs = self.inputs, self.tensor, self.contraction_axes
        return (
            distinct_axes([first for first, _ in pairs], a.rank, "the contracted axes of a")
            or distinct_axes([second for _, second in pairs], b.rank, "the contracted axes of b")
            or has_rank(result, a.rank + b.rank - 2 * len(pairs), "the result")
            or same_dtype(a, b, result)
        )
