"""Element positions in windows of one tensor for each element of another, as gather and scatter need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorkiln import build
from tensorkiln.build import Builder, Tensor
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, product

from .movement import broadcast


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of a tensor of `shape`. Another tensor, of shape `other`, has all elements of all windows.

    `listed` are the other tensor's axes that run over the windows. `starts` are the windows' starts along the axes
    `indexed`, each of the shape of `listed`. `window` maps axes within a window to axes of the other tensor, `batch`
    axes that both tensors share.
    """

    builder: Builder
    shape: Sequence[Dim]
    other: Sequence[Dim]
    listed: Sequence[int]
    starts: Sequence[Tensor]
    indexed: Sequence[int]
    window: dict[int, int]
    batch: dict[int, int]

    def along(self, axis: int) -> Tensor:
        """The position along an axis of each element of the other tensor; broadcasts to its shape."""
        terms: list[Tensor] = []
        if axis in self.indexed:
            start = self.starts[list(self.indexed).index(axis)]
            terms.append(self._spread(start, self.listed))
        for axes in (self.window, self.batch):
            if axis in axes:
                count = build.arange(self.builder, self.other[axes[axis]])
                terms.append(self._spread(count, [axes[axis]]))
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def _spread(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        dims: list[Dim] = [1] * len(self.other)
        for own, axis in zip(x.shape, axes, strict=True):
            dims[axis] = own
        return broadcast(x, dims, axes) if x.shape else x.reshape(dims)

    @property
    def places(self) -> list[int]:
        """The axes along which a position may be nonzero."""
        return [axis for axis in range(len(self.shape)) if axis in {*self.indexed, *self.window, *self.batch}]


def linear(windows: Windows, is_dropped: bool) -> Tensor:
    """The positions in the flattened tensor, in the shape of the other tensor.

    With `is_dropped`, -1 for a position out of range.
    """
    builder = windows.builder
    total: Tensor = builder.scalar(0, DType.INT64)
    inside: Tensor | None = None
    for axis in windows.places:
        position = windows.along(axis)
        stride = build.dim_value(builder, product(windows.shape[axis + 1 :]))
        total = total + position * stride
        if is_dropped and axis in windows.indexed:
            size = build.dim_value(builder, windows.shape[axis])
            fits = (position >= 0) & (position < size)
            inside = fits if inside is None else inside & fits
    if inside is not None:
        total = build.where(inside, total, -1)
    return total.expand(list(windows.other))


def components(indices: Tensor, vector_axis: int) -> list[Tensor]:
    """The entries of index vectors along an axis, one int64 tensor per entry."""
    whole = indices.unsqueeze([-1]) if vector_axis == indices.rank else build.moveaxis(indices, vector_axis, -1)
    count = whole.shape[-1]
    if not isinstance(count, int):
        raise indices.builder.error(f"the length of index vectors is {count}, which is not static")
    return [to_int64(whole[..., place]) for place in range(count)]


def to_int64(x: Tensor) -> Tensor:
    """Cast integers to int64, saturating."""
    if x.dtype is DType.UINT64:
        x = build.minimum(x, int(DType.INT64.max))
    return x.cast(DType.INT64)
