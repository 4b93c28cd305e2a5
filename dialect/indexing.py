"""Ops with addresses as data: masks, indices, lanes, gather and scatter."""

from collections.abc import Sequence
from typing import Any

from tensorkiln.nodes import ScatterKind

from .fields import enum, integer, integers
from .mlir import ext, ir
from .operation import KilnOp, MixedOperandsOp
from .rules import distinct_axes, has_rank, same_dtype, same_shape, shape_text
from .shape_trackers import shape_tracker, tracker_problem


class ValidOp(KilnOp, name="valid", traits=[ext.Pure]):
    """The mask of the tracker, as bool, for a scalar bool or unit source; else `where(mask, source, 0)`."""

    source: ext.Operand[Any]
    shape_tracker = shape_tracker()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return tracker_problem(self.shape_tracker, self.tensor.shape)


class IndexOp(KilnOp, name="index", traits=[ext.Pure]):
    """Flat elements `idx` of the source; 0 where `valid` is false or the index is out of range."""

    source: ext.Operand[Any]
    idx: ext.Operand[Any]
    gates: Sequence[ext.Operand[Any]]
    result: ext.Result[Any]

    @property
    def valid(self) -> ir.Value | None:
        """The gate, if there is one."""
        return self.operands[2] if len(self.operands) > 2 else None

    def problem(self) -> str | None:
        (source, idx, *gates), result = self.inputs, self.tensor
        if len(gates) > 1:
            return f"there are {len(gates)} gates, not one or none"
        return same_dtype(source, result) or has_rank(result, idx.rank, "the result")


class GepOp(KilnOp, name="gep", traits=[ext.Pure]):
    """Lanes of the last axis; a single index drops that axis."""

    source: ext.Operand[Any]
    indices = integers()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (source,), result, lanes = self.inputs, self.tensor, self.indices
        if source.rank == 0 or not lanes:
            return "there is no last axis, or no lane of it is taken"
        return same_dtype(source, result) or has_rank(result, source.rank - (len(lanes) == 1), "the result")


class VectorizeOp(MixedOperandsOp, name="vectorize", traits=[ext.Pure]):
    """Stacks two or more values of one shape on a new last axis."""

    result: ext.Result[Any]

    def problem(self) -> str | None:
        lanes, result = self.inputs, self.tensor
        if any(lane.rank + 1 != result.rank for lane in lanes) or result.shape[-1] != len(lanes):
            return f"{len(lanes)} values do not stack to the shape {shape_text(result.shape)}"
        return same_dtype(*lanes, result)


class GatherOp(KilnOp, name="gather", traits=[ext.Pure]):
    """Takes along `axis`; an index out of range gives 0."""

    src: ext.Operand[Any]
    indices: ext.Operand[Any]
    axis = integer()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (src, indices), result = self.inputs, self.tensor
        return (
            has_rank(indices, src.rank, "indices")
            or same_dtype(src, result)
            or same_shape(indices.shape, result.shape)
            or distinct_axes([self.axis], src.rank, "axis")
        )


class ScatterOp(KilnOp, name="scatter", traits=[ext.Pure]):
    """Puts updates along `axis` into a copy of `init`, or into zeros: replaces elements or combines with them.

    Updates are applied in row-major order, and an index out of range is dropped. On other axes than `axis`, indices of
    size 1 hold for all updates.
    """

    indices: ext.Operand[Any]
    updates: ext.Operand[Any]
    inits: Sequence[ext.Operand[Any]]
    axis = integer()
    reduction = enum(ScatterKind)
    result: ext.Result[Any]

    @property
    def init(self) -> ir.Value | None:
        """The initial values, if they are not zeros."""
        return self.operands[2] if len(self.operands) > 2 else None

    def problem(self) -> str | None:
        (indices, updates, *inits), result = self.inputs, self.tensor
        if len(inits) > 1:
            return f"there are {len(inits)} initial values, not one or none"
        return (
            has_rank(updates, indices.rank, "updates")
            or has_rank(result, indices.rank, "the result")
            or same_dtype(updates, *inits, result)
            or next(filter(None, (same_shape(init.shape, result.shape) for init in inits)), None)
            or distinct_axes([self.axis], result.rank, "axis")
        )
