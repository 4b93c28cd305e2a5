"""Pure movement: shapes, views, padding, concatenation."""

from __future__ import annotations

from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import Axes, Dimension, DimensionPairs, Integer, Shape, Var, Vars


class ViewSpec(Record):
    """Element i of `shape` is at `offset + sum(i * strides)`, and 0 outside of `mask`: (begin, end) per axis."""

    shape: Shape
    strides: Shape
    offset: Dimension
    mask: DimensionPairs | None = None


class ShapeTracker(Record):
    """Views from the storage outwards; the last one has the shape of the result."""

    views: tuple[ViewSpec, ...]
    shape: Shape


class View(Record):
    """The elements of the input, taken as flat row-major storage, that the shape tracker addresses."""

    node: Literal["view"] = "view"
    in_var: Var
    shape_tracker: ShapeTracker
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Reshape(Record):
    """The same elements in row-major order in another shape."""

    node: Literal["reshape"] = "reshape"
    in_var: Var
    new_shape: Shape
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Permute(Record):
    """Axis i of the result is axis `axes_permutation[i]` of the input."""

    node: Literal["permute"] = "permute"
    in_var: Var
    axes_permutation: Axes
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Expand(Record):
    """Repeats axes of size 1 up to `new_target_shape`."""

    node: Literal["expand"] = "expand"
    in_var: Var
    new_target_shape: Shape
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Pad(Record):
    """Puts `(before, after)` zeros around each axis."""

    node: Literal["pad"] = "pad"
    in_var: Var
    pad_width: DimensionPairs
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Shrink(Record):
    """Keeps `begin <= i < end` of each axis."""

    node: Literal["shrink"] = "shrink"
    in_var: Var
    limits: DimensionPairs
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Flip(Record):
    """Reverses axes."""

    node: Literal["flip"] = "flip"
    in_var: Var
    axes: Axes
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Cat(Record):
    """Joins the inputs along `axis`, which may count from the end."""

    node: Literal["cat"] = "cat"
    in_vars: Vars
    axis: Integer
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return self.in_vars
