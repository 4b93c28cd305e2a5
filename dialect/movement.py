"""Pure movement. A reshape or an expand takes its shape from its result."""

from typing import Any

from tensorkiln.expr import add, sub

from .fields import dim_pairs, integer, integers
from .mlir import ext
from .operation import KilnOp, MixedOperandsOp
from .rules import distinct_axes, has_rank, one_per_axis, same_count, same_dtype, same_shape, same_type
from .shape_trackers import shape_tracker, tracker_problem


class ViewOp(KilnOp, name="view", traits=[ext.Pure]):
    """The elements of the source, taken as flat row-major storage, that the shape tracker addresses."""

    source: ext.Operand[Any]
    shape_tracker = shape_tracker()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return tracker_problem(self.shape_tracker, self.tensor.shape) or same_dtype(*self.inputs, self.tensor)


class ReshapeOp(KilnOp, name="reshape", traits=[ext.Pure]):
    """The same elements in row-major order in another shape."""

    source: ext.Operand[Any]
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (source,), result = self.inputs, self.tensor
        return same_dtype(source, result) or same_count(source, result)


class PermuteOp(KilnOp, name="permute", traits=[ext.Pure]):
    """Axis i of the result is axis `axes_permutation[i]` of the source."""

    source: ext.Operand[Any]
    axes_permutation = integers()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (source,), result, axes = self.inputs, self.tensor, self.axes_permutation
        if sorted(axes) != list(range(source.rank)):
            return f"axes_permutation {list(axes)} is no permutation of {source.rank} axes"
        return same_dtype(source, result) or same_shape([source.shape[axis] for axis in axes], result.shape)


class ExpandOp(KilnOp, name="expand", traits=[ext.Pure]):
    """Repeats axes of size 1 up to the shape of the result."""

    source: ext.Operand[Any]
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (source,), result = self.inputs, self.tensor
        return same_dtype(source, result) or has_rank(result, source.rank, "the result")


class PadOp(KilnOp, name="pad", traits=[ext.Pure]):
    """Puts `(before, after)` zeros around each axis."""

    source: ext.Operand[Any]
    pad_width = dim_pairs()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (source,), result, width = self.inputs, self.tensor, self.pad_width
        if one_per_axis(width, source.rank, "pad_width"):
            return one_per_axis(width, source.rank, "pad_width")
        padded = [add(dim, *pair) for dim, pair in zip(source.shape, width, strict=True)]
        return same_dtype(source, result) or same_shape(padded, result.shape)


class ShrinkOp(KilnOp, name="shrink", traits=[ext.Pure]):
    """Keeps `begin <= i < end` of each axis."""

    source: ext.Operand[Any]
    limits = dim_pairs()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (source,), result, limits = self.inputs, self.tensor, self.limits
        kept = [sub(end, begin) for begin, end in limits]
        return (
            one_per_axis(limits, source.rank, "limits") or same_dtype(source, result) or same_shape(kept, result.shape)
        )


class FlipOp(KilnOp, name="flip", traits=[ext.Pure]):
    """Reverses axes."""

    source: ext.Operand[Any]
    axes = integers()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (source,), result = self.inputs, self.tensor
        return same_type(source, result) or distinct_axes(self.axes, source.rank, "axes")


class CatOp(MixedOperandsOp, name="cat", traits=[ext.Pure]):
    """Joins the values along `axis`, which is not negative."""

    axis = integer()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        parts, result = self.inputs, self.tensor
        if not parts or any(part.rank != result.rank for part in parts):
            return f"parts of the ranks {[part.rank for part in parts]} do not join to rank {result.rank}"
        return same_dtype(*parts, result) or distinct_axes([self.axis], result.rank, "axis")
