"""Storage: inputs, buffers, views into them, copies and in-place updates."""

from __future__ import annotations

from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import DeviceName, Dimension, Flag, Integer, Shape, Var


class Buffer(Record):
    """Flat storage of `size_in_elements` elements, or N-d by the metadata of `out_var`.

    Before one other node with the same `out_var` it only declares where that node puts its result.
    """

    node: Literal["buffer"] = "buffer"
    dtype: DType
    size_in_elements: Dimension
    device: DeviceName
    out_var: Var

    @property
    def operands(self) -> tuple[int, ...]:
        return ()


class BufferView(Record):
    """`size` elements of `dtype` in the storage of `buffer_var`, from its element number `offset` on."""

    node: Literal["buffer_view"] = "buffer_view"
    buffer_var: Var
    size: Dimension
    offset: Dimension
    dtype: DType
    out_var: Var

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.buffer_var,)


class Placeholder(Record):
    """An input of the graph; `out_var` stands in `input_vars`."""

    node: Literal["placeholder"] = "placeholder"
    out_var: Var
    dtype: DType
    shape: Shape

    @property
    def operands(self) -> tuple[int, ...]:
        return ()


class Contiguous(Record):
    """Identity; asks for the value to be stored."""

    node: Literal["contiguous"] = "contiguous"
    in_var: Var
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Copy(Record):
    """The same values on `target_device`; `clone` asks for a new buffer even there."""

    node: Literal["copy"] = "copy"
    in_var: Var
    target_device: DeviceName
    clone: Flag
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


Update = tuple[Var, Var, tuple[Integer, Integer] | None]


class Assign(Record):
    """`target[...] = src` for each update `(src_var, dst_var, range)` in order; `dst_var` is `target_var`.

    A range `(b, e)` is of flat elements, and null is the whole target. `out_var` is the target's new value.
    """

    node: Literal["assign"] = "assign"
    target_var: Var
    updates: tuple[Update, ...]
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.target_var, *(update[0] for update in self.updates))
