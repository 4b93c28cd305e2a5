"""Slices along an axis, and replacement of slices."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...build.shape import at_least, at_most
from ...expr import Dim, add, ceildiv, sub
from .call import Call, Operator

FAR = (1 << 63) - 1


def _slice(call: Call) -> Tensor:
    x = call.tensor()
    axis = call.axis(x, default=0)
    start, stop, step = _range(call, x, axis)
    return _part(x, axis, start, stop, step)


def _range(call: Call, x: Tensor, axis: int) -> tuple[Dim, Dim, int]:
    """Start and stop, clipped to the axis as in Python, and the step."""
    step = call.integer("step", 1)
    if step < 1:
        call.invalid(f"the step {step} of a slice is less than 1")
    size = x.shape[axis]
    start = _bound(call, x, call.dim("start", 0), size)
    stop = _bound(call, x, call.dim("end", FAR), size)
    return start, at_least(x.builder, stop, start), step


def _bound(call: Call, x: Tensor, given: Dim, size: Dim) -> Dim:
    low, high = x.builder.bounds(given)
    if isinstance(given, int) and given >= FAR:
        return size
    position = add(given, size) if high < 0 else given
    if low < 0 <= high:
        # A negative bound counts from the end, but the sign is not known from the symbols' bounds.
        call.fail(f"whether the bound {given} of a slice is negative depends on symbols")
    return at_most(x.builder, at_least(x.builder, position, 0), size)


def _part(x: Tensor, axis: int, start: Dim, stop: Dim, step: int) -> Tensor:
    limits: list[tuple[Dim, Dim]] = [(0, dim) for dim in x.shape]
    limits[axis] = (start, stop)
    part = build.shrink(x, limits)
    if step == 1:
        return part
    count = ceildiv(sub(stop, start), step)
    # Pad to whole steps, then keep the first element of each.
    padded = build.pad(part, [(0, count * step - dim if place == axis else 0) for place, dim in enumerate(part.shape)])
    cells = padded.reshape([*padded.shape[:axis], count, step, *padded.shape[axis + 1 :]])
    firsts = [(0, 1) if place == axis + 1 else (0, dim) for place, dim in enumerate(cells.shape)]
    return build.shrink(cells, firsts).squeeze(axis + 1)


def _select(call: Call) -> Tensor:
    x = call.tensor()
    axis, index = call.axis(x), call.dim("index")
    low, high = x.builder.bounds(index)
    if low < 0 <= high:
        call.fail(f"whether the index {index} is negative depends on symbols")
    position = add(index, x.shape[axis]) if high < 0 else index
    return _part(x, axis, position, add(position, 1), 1).squeeze(axis)


def _split_sizes(call: Call) -> list[Tensor]:
    x = call.tensor()
    return list(build.split(x, call.dims("split_sizes"), call.axis(x, default=0)))


def _split(call: Call) -> list[Tensor]:
    x, size = call.tensor(), call.integer("split_size")
    axis = call.axis(x, default=0)
    whole = x.shape[axis]
    if not isinstance(whole, int) or size < 1:
        call.fail(f"{whole} elements are split into parts of {size}, of which the number must be known")
    sizes = [min(size, whole - start) for start in range(0, whole, size)] or [0]
    return list(build.split(x, sizes, axis))


def _unbind(call: Call) -> list[Tensor]:
    x = call.tensor()
    axis = call.axis(x, default=0)
    size = x.shape[axis]
    if not isinstance(size, int):
        call.fail(f"the {size} parts of axis {axis} must be known")
    return [_part(x, axis, place, place + 1, 1).squeeze(axis) for place in range(size)]


def _slice_scatter(call: Call) -> Tensor:
    x, source = call.tensor(), call.tensor("src").cast(call.tensor().dtype)
    axis = call.axis(x, default=0)
    start, stop, step = _range(call, x, axis)
    if step != 1:
        return _stepped(x, source, axis, start, stop, step)
    before, after = (0, start), (stop, x.shape[axis])
    parts = [_part(x, axis, *before, 1), source, _part(x, axis, *after, 1)]
    return build.cat(parts, axis)


def _stepped(x: Tensor, source: Tensor, axis: int, start: Dim, stop: Dim, step: int) -> Tensor:
    """Replace a slice with a step: each element reads from the source position that would write it."""
    rest = (1,) * (x.rank - 1 - axis)
    away = build.arange(x.builder, x.shape[axis]) - build.dim_value(x.builder, start)
    end = build.dim_value(x.builder, sub(stop, start))
    hit = (away >= 0) & (away < end) & build.equal(away % step, 0)
    read = build.take(source, build.where(hit, away // step, 0), axis)
    return build.where(hit.reshape([x.shape[axis], *rest]), read, x)


def _select_scatter(call: Call) -> Tensor:
    x, index = call.tensor(), call.dim("index")
    axis = call.axis(x)
    low, high = x.builder.bounds(index)
    if low < 0 <= high:
        call.fail(f"whether the index {index} is negative depends on symbols")
    position = add(index, x.shape[axis]) if high < 0 else index
    source = call.tensor("src").cast(x.dtype).unsqueeze(axis)
    parts = [_part(x, axis, 0, position, 1), source, _part(x, axis, add(position, 1), x.shape[axis], 1)]
    return build.cat(parts, axis)


def _diagonal_scatter(call: Call) -> Tensor:
    """Replace a diagonal: the elements whose column minus row is the offset."""
    x, offset = call.tensor(), call.integer("offset", 0)
    source = call.tensor("src").cast(x.dtype)
    first, second = call.axis(x, "dim1", 0), call.axis(x, "dim2", 1)
    rest = [axis for axis in range(x.rank) if axis not in (first, second)]
    order = [*rest, first, second]
    moved = x.permute(order)
    rows, columns = (build.arange(x.builder, dim) for dim in moved.shape[-2:])
    hit = build.equal(columns - rows.unsqueeze(1), offset)
    place = rows.unsqueeze(1) + min(offset, 0) + build.zeros(x.builder, moved.shape[-2:], "int64")
    spread = build.take(source, build.where(hit, place, 0), source.rank - 1)
    return build.where(hit, spread, moved).permute([order.index(axis) for axis in range(x.rank)])


def _unfold(call: Call) -> Tensor:
    """Windows along an axis, one every `step` elements, with their elements on a new last axis."""
    x, size, step = call.tensor(), call.integer("size"), call.integer("step")
    if not x.shape:
        return x.reshape([1])
    axis = call.axis(x, "dimension")
    count = call.result_shape()[axis]
    starts = build.arange(x.builder, count) * step
    found = build.take(x, starts.unsqueeze(1) + build.arange(x.builder, size), axis)
    return build.moveaxis(found, axis + 1, -1)


OPERATORS: dict[str, Operator] = {
    "aten.diagonal_scatter.default": _diagonal_scatter,
    "aten.select.int": _select,
    "aten.select_copy.int": _select,
    "aten.select_scatter.default": _select_scatter,
    "aten.slice.Tensor": _slice,
    "aten.slice_copy.Tensor": _slice,
    "aten.slice_scatter.default": _slice_scatter,
    "aten.split.Tensor": _split,
    "aten.split_with_sizes.default": _split_sizes,
    "aten.split_with_sizes_copy.default": _split_sizes,
    "aten.unbind.int": _unbind,
    "aten.unbind_copy.int": _unbind,
    "aten.unfold.default": _unfold,
    "aten.unfold_copy.default": _unfold,
}
