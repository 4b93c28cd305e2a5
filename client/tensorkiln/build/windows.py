"""Sliding windows: one view with overlapping strides over the padded tensor, so that no window is ever copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..expr import Dim, add, floordiv, mul, product, sub
from .movement import view
from .shape import row_major_strides

if TYPE_CHECKING:
    from .tensor import Tensor

PerAxis = int | Sequence[int]


@dataclass(frozen=True, slots=True)
class Window:
    """A window over the last axes of a tensor: one entry a spatial axis."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """The number of elements from the first to the last of a window, inclusive."""
        return tuple((size - 1) * dilation + 1 for size, dilation in zip(self.size, self.dilation, strict=True))


def window(x: Tensor, size: PerAxis, stride: PerAxis, dilation: PerAxis, rank: int) -> Window:
    """The window over `rank` spatial axes; one integer stands for all. InvalidGraphError when one is not positive."""
    found = Window(*(per_axis(x, value, rank) for value in (size, stride, dilation)))
    if any(value < 1 for entry in (found.size, found.stride, found.dilation) for value in entry):
        raise x.builder.error(f"the sizes, strides and dilations of a window are at least 1: {found}")
    return found


def per_axis(x: Tensor, value: PerAxis, rank: int) -> tuple[int, ...]:
    """One entry a spatial axis. InvalidGraphError when the count is wrong."""
    entries = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(entries) != rank:
        raise x.builder.error(f"{len(entries)} entries {entries} do not fit {rank} spatial axes")
    return entries


def window_counts(x: Tensor, over: Window) -> tuple[Dim, ...]:
    """How many whole windows fit each spatial axis. InvalidGraphError where none ever fits."""
    spatial = x.shape[-len(over.size) :]
    counts = tuple(
        add(floordiv(sub(dim, reach), stride), 1)
        for dim, reach, stride in zip(spatial, over.reach, over.stride, strict=True)
    )
    for dim, reach, count in zip(spatial, over.reach, counts, strict=True):
        if x.builder.bounds(count)[1] < 1:
            raise x.builder.error(f"a window that reaches over {reach} elements does not fit a dimension of {dim}")
    return counts


def grouped_windows(x: Tensor, over: Window, groups: int) -> Tensor:
    """(N, G * Cg, *spatial) as (N, G, 1, *counts, Cg, *size): the operand of a convolution."""
    counts = window_counts(x, over)
    batch, channels, *spatial = x.shape
    image, steps = product(spatial), row_major_strides(spatial)
    per_group = floordiv(channels, groups)
    shape = [batch, groups, 1, *counts, per_group, *over.size]
    strides = [mul(channels, image), mul(per_group, image), 0, *_moves(over, steps), image, *_taps(over, steps)]
    return view(x, shape, strides)


def plain_windows(x: Tensor, over: Window) -> Tensor:
    """(…, *spatial) as (…, *counts, *size): the operand of a pooling."""
    rank = len(over.size)
    strides = row_major_strides(x.shape)
    steps = strides[-rank:]
    shape = [*x.shape[:-rank], *window_counts(x, over), *over.size]
    return view(x, shape, [*strides[:-rank], *_moves(over, steps), *_taps(over, steps)])


def _moves(over: Window, steps: Sequence[Dim]) -> list[Dim]:
    return [mul(stride, step) for stride, step in zip(over.stride, steps, strict=True)]


def _taps(over: Window, steps: Sequence[Dim]) -> list[Dim]:
    return [mul(dilation, step) for dilation, step in zip(over.dilation, steps, strict=True)]


def axis_windows(x: Tensor, axis: int, size: int) -> Tensor:
    """Windows of `size` neighbours along one axis, on a new last axis."""
    strides = row_major_strides(x.shape)
    shape = [*x.shape[:axis], sub(x.shape[axis], size - 1), *x.shape[axis + 1 :], size]
    return view(x, shape, [*strides, strides[axis]])
