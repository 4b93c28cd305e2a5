"""gather and dynamic_slice: windows read at computed positions, clamped so that they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dialect.mlir import stablehlo
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.expr import Dim, product

from .op import Op
from .positions import Windows, components, linear, to_int64
from .table import Translator
from .value import Known, Value


def _gather(op: Op) -> Value:
    return gathered(op, op.integers("slice_sizes"))


def gathered(op: Op, sizes: Sequence[Dim]) -> Value:
    """The result of a gather with windows of these sizes."""
    x, indices = op.tensor(0), op.tensor(1)
    numbers = stablehlo.GatherDimensionNumbers(op.attribute("dimension_numbers"))
    indexed = list(numbers.start_index_map)
    vectors = components(indices, numbers.index_vector_dim)
    starts = [clamped(each, x.shape[axis], sizes[axis]) for each, axis in zip(vectors, indexed, strict=True)]
    offsets = list(numbers.offset_dims)
    batching = list(numbers.operand_batching_dims)
    dropped = {*numbers.collapsed_slice_dims, *batching}
    extended = [axis for axis in range(x.rank) if axis not in dropped]
    count = len(offsets) + (indices.rank if numbers.index_vector_dim == indices.rank else indices.rank - 1)
    listed = [axis for axis in range(count) if axis not in offsets]
    list_dims = [dim for axis, dim in enumerate(indices.shape) if axis != numbers.index_vector_dim]
    shape: list[Dim] = [0] * count
    for axis, dim in zip(listed, list_dims, strict=True):
        shape[axis] = dim
    for axis, own in zip(offsets, extended, strict=True):
        shape[axis] = sizes[own]
    if len(indexed) == 1 and not batching and _takes_slices(x, sizes, indexed[0], dropped):
        return _taken(x, starts[0], indexed[0], offsets, listed)
    shared = [_list_axis(axis, numbers.index_vector_dim, listed) for axis in numbers.start_indices_batching_dims]
    windows = Windows(
        op.builder,
        x.shape,
        shape,
        listed,
        starts,
        indexed,
        window=dict(zip(extended, offsets, strict=True)),
        batch=dict(zip(batching, shared, strict=True)),
    )
    places = linear(windows, is_dropped=False)
    return build.gather(x.reshape([product(x.shape)]), places.reshape([product(shape)]), 0).reshape(shape)


def _takes_slices(x: Tensor, sizes: Sequence[Dim], axis: int, dropped: set[int]) -> bool:
    """Whether each window is a whole slice at one position of `axis`, as in a table lookup."""
    rest = all(sizes[other] == x.shape[other] for other in range(x.rank) if other != axis)
    return rest and dropped == {axis}


def _taken(x: Tensor, start: Tensor, axis: int, offsets: Sequence[int], listed: Sequence[int]) -> Tensor:
    found = build.take(x, start, axis)
    order = [0] * found.rank
    for place, out in enumerate(listed):
        order[out] = axis + place
    for place, out in enumerate(offsets):
        order[out] = place if place < axis else place + len(listed)
    return found.permute(order)


def _list_axis(axis: int, vector_axis: int, listed: Sequence[int]) -> int:
    """The axis of the result for an axis of the indices."""
    return listed[axis if axis < vector_axis else axis - 1]


def clamped(start: Tensor, dim: Dim, size: Dim) -> Tensor:
    """Clamp the starts of windows of `size` so that these fit into `dim`."""
    most = build.dim_value(start.builder, dim - size)
    return build.maximum(build.minimum(start, most), 0)


def _dynamic_slice(op: Op) -> Value:
    return sliced(op, op.operands[1:], op.integers("slice_sizes"))


def sliced(op: Op, starts: Sequence[Value], sizes: Sequence[Dim]) -> Tensor:
    """The window of these sizes of the first operand, from these starts of rank 0, clamped so that it fits."""
    x = op.tensor(0)
    limits: list[tuple[Dim, Dim]] = [(0, dim) for dim in x.shape]
    moving: list[tuple[int, Tensor]] = []
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        if size == x.shape[axis]:
            continue
        begin = known_start(op, start, x.shape[axis], size)
        if begin is None:
            moving.append((axis, clamped(to_int64(op.as_tensor(start)), x.shape[axis], size)))
        else:
            limits[axis] = (begin, begin + size)
    x = build.shrink(x, limits)
    for axis, start in moving:
        x = build.take(x, start + build.arange(op.builder, sizes[axis]), axis)
    return x


def known_start(op: Op, start: Value, dim: Dim, size: Dim) -> Dim | None:
    """The clamped start of a window; None if it is computed at run time, or if symbols may make it not fit."""
    if not isinstance(start, Known):
        return None
    begin, last = start.array.item(), dim - size
    if isinstance(begin, int) and isinstance(last, int):
        return max(min(begin, last), 0)
    fits = op.builder.bounds(begin)[0] >= 0 and op.builder.bounds(last - begin)[0] >= 0
    return begin if fits else None


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.gather": _gather,
}
