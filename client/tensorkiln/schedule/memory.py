"""The memory of a scheduled value: layout in elements, allocation in bytes, lifetime in item ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from ..dtypes import DType
from ..expr import Dim, maximum, mul, product
from ..nodes.base import Record
from ..sizes import WireSize

MemoryScope = Literal["global", "shared", "register"]


def contiguous_strides(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Row-major strides in elements. A size of zero counts as one, so `[2, 0, 3]` has `[3, 3, 1]`."""
    strides: list[Dim] = []
    running: Dim = 1
    for size in reversed(shape):
        strides.append(running)
        running = mul(running, max(size, 1) if isinstance(size, int) else maximum(size, 1))
    return tuple(reversed(strides))


class Layout(Record):
    """Shape and strides in elements, alignment in bytes, `vector_width` in elements per lane."""

    shape: tuple[WireSize, ...]
    strides: tuple[WireSize, ...]
    alignment: int = Field(default=16, ge=1)
    vector_width: int = Field(default=1, ge=1)
    contiguous_axes: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _ranks_agree(self) -> Layout:
        if len(self.strides) != len(self.shape):
            raise ValueError(f"a layout of rank {len(self.shape)} has {len(self.strides)} strides")
        if any(not 0 <= axis < len(self.shape) for axis in self.contiguous_axes):
            raise ValueError(f"contiguous_axes {self.contiguous_axes} names an axis outside of rank {len(self.shape)}")
        return self

    @staticmethod
    def row_major(shape: Sequence[Dim], *, alignment: int = 16, vector_width: int = 1) -> Layout:
        """The default layout: row-major, every axis contiguous."""
        return Layout(
            shape=tuple(shape),
            strides=contiguous_strides(shape),
            alignment=alignment,
            vector_width=vector_width,
            contiguous_axes=tuple(range(len(shape))),
        )


def size_bytes_of_layout(dtype: DType, layout: Layout) -> Dim:
    """Bytes of the elements of `layout`: a rank-0 value has one element, a value of dtype unit takes no bytes."""
    return mul(product(layout.shape), dtype.itemsize)


class Allocation(Record):
    """Where a value lives; `lifetime` is the inclusive range of item ids during which it must be kept."""

    scope: MemoryScope = "global"
    size_bytes: WireSize
    lifetime: tuple[int, int]
    alias_group: int | None = None

    @model_validator(mode="after")
    def _lifetime_is_a_range(self) -> Allocation:
        if self.lifetime[0] > self.lifetime[1]:
            raise ValueError(f"the lifetime {self.lifetime} ends before it begins")
        return self


class BufferInfo(Record):
    """One buffer that a kernel reads or writes.

    A kernel's arguments are its inputs, then its outputs; but an input that an output takes the place of, whose
    allocation has the same alias group and offset, is not an argument of its own.
    """

    buf_var: int
    dtype: DType
    layout: Layout
    alloc: Allocation
    is_input: bool = False
    is_output: bool = False

    @staticmethod
    def of(
        buf_var: int,
        dtype: DType,
        shape: Sequence[Dim],
        lifetime: tuple[int, int],
        *,
        is_input: bool = False,
        is_output: bool = False,
        scope: MemoryScope = "global",
        alias_group: int | None = None,
    ) -> BufferInfo:
        """A row-major buffer whose allocation is exactly its elements."""
        layout = Layout.row_major(shape)
        alloc = Allocation(
            scope=scope,
            size_bytes=size_bytes_of_layout(dtype, layout),
            lifetime=lifetime,
            alias_group=alias_group,
        )
        return BufferInfo(
            buf_var=buf_var, dtype=dtype, layout=layout, alloc=alloc, is_input=is_input, is_output=is_output
        )
