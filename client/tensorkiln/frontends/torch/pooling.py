"""Pooling over the last axes, with the positions of maxima, and the gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...build.windows import plain_windows, window
from ...dtypes import DType
from ...errors import UnsupportedGraphError
from ...expr import Dim, product, sub
from ..composed.spreading import spread_spatial
from .call import Call, Operator

MAX_CELLS: Final = 1 << 16
"""The most elements along an axis of adaptive pooling, which uses a table."""
MAX_TAPS: Final = 1 << 12
"""The most elements of a window that `folded` adds up one by one."""


def _per_axis(call: Call, name: str, rank: int, default: Sequence[int]) -> list[int]:
    given = call.integers(name, default) or list(default)
    return given * rank if len(given) == 1 else given


def _window(call: Call, rank: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """Kernel, stride, padding and dilation; the default stride is the kernel."""
    kernel = _per_axis(call, "kernel_size", rank, [])
    stride = _per_axis(call, "stride", rank, kernel)
    return kernel, stride, _per_axis(call, "padding", rank, [0]), _per_axis(call, "dilation", rank, [1])


def _average(rank: int) -> Operator:
    def apply(call: Call) -> Tensor:
        x = call.tensor()
        kernel, stride, padding, _ = _window(call, rank)
        ceil_mode, counts = call.flag("ceil_mode"), call.flag("count_include_pad", True)
        if not call.has("divisor_override"):
            return build.avg_pool(x, kernel, stride, padding, 1, ceil_mode, counts, rank=rank)
        if ceil_mode:
            call.fail("divisor_override with ceil_mode is not supported")
        averages = build.avg_pool(x, kernel, stride, padding, 1, False, True, rank=rank)
        return averages * (math.prod(kernel) / call.number("divisor_override"))

    return apply


def _greatest(rank: int) -> Operator:
    """The maximum of each window and its position in the flattened image; the first of equal elements."""

    def apply(call: Call) -> list[Tensor]:
        x = call.tensor()
        kernel, stride, padding, dilation = _window(call, rank)
        ceil_mode = call.flag("ceil_mode")
        values = build.max_pool(x, kernel, stride, padding, dilation, ceil_mode, rank=rank)
        if not call.is_read(1):
            return [values]
        if ceil_mode:
            call.fail("positions are not supported with ceil_mode")
        return [values, _places(x, kernel, stride, padding, dilation)]

    return apply


def _places(
    x: Tensor, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> Tensor:
    rank, lead = len(kernel), x.rank - len(kernel)
    over = window(x, kernel, stride, dilation, rank)
    widths: list[tuple[Dim, Dim]] = [*((0, 0) for _ in range(lead)), *((width, width) for width in padding)]
    values = plain_windows(build.pad(x, widths, x.dtype.min), over)
    counts, size = values.shape[: lead + rank], math.prod(kernel)
    values = values.reshape([*counts, size])
    inside = plain_windows(build.pad(build.ones(x.builder, x.shape[lead:], DType.BOOL), widths[lead:]), over)
    most = values.max([-1], True)
    # Exclude padding, which may equal the maximum.
    found = (build.equal(values, most) & inside.reshape([*counts[lead:], size])).cast(DType.INT32)
    if x.dtype.is_float:
        # torch returns the position of the last NaN.
        found = build.where(build.is_nan(values), build.arange(x.builder, size, DType.INT32) + 2, found)
    tap = build.argmax(found, -1)
    return _position(x, tap, counts[lead:], kernel, stride, padding, dilation)


def _position(
    x: Tensor,
    tap: Tensor,
    counts: Sequence[Dim],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """The position in the flattened image of tap number `tap` of each window."""
    rank = len(kernel)
    total: Tensor | None = None
    for axis in range(rank):
        below = math.prod(kernel[axis + 1 :])
        along = (tap // below) % kernel[axis]
        first = build.arange(x.builder, counts[axis]).reshape([-1, *(1,) * (rank - 1 - axis)]) * stride[axis]
        place = first - padding[axis] + along * dilation[axis]
        size = build.dim_value(x.builder, x.shape[x.rank - rank + axis])
        total = place if total is None else total * size + place
    assert total is not None, "a window has axes"
    return total


def _adaptive_average(rank: int) -> Operator:
    """Adaptive average pooling, axis by axis; windows start and end at the scaled positions."""

    def apply(call: Call) -> Tensor:
        x, wanted = call.tensor(), call.dims("output_size")
        for axis, size in zip(range(x.rank - rank, x.rank), wanted, strict=True):
            x = _averaged(call, x, axis, size)
        return x

    return apply


def _averaged(call: Call, x: Tensor, axis: int, size: Dim) -> Tensor:
    own = x.shape[axis]
    if size == own:
        return x
    if size == 1:
        return x.mean([axis], True)
    cells, inside = _cells(call, x, axis, size)
    wide = widened(cells)
    counts = inside.sum(axis=1).astype(np.float64).reshape([-1, *(1,) * (x.rank - 1 - axis)])
    mask = x.builder.constant(inside).reshape([*inside.shape, *(1,) * (x.rank - 1 - axis)])
    total = build.where(mask, wide, 0.0).sum([axis + 1])
    return (total / x.builder.constant(counts.astype(wide.dtype.numpy), wide.dtype)).cast(x.dtype)


def _adaptive_average_gradient(rank: int) -> Operator:
    """Each element gets the gradients of all windows that contain it, divided by their sizes."""

    def apply(call: Call) -> Tensor:
        gradient, x = call.tensor("grad_output"), call.tensor()
        wide = widened(gradient)
        for axis in range(x.rank - rank, x.rank):
            wide = _spread(call, wide, axis, x.shape[axis])
        return wide.cast(call.dtype)

    return apply


def _adaptive_greatest_gradient(rank: int) -> Operator:
    """Each gradient is added at the position of its window's maximum; windows may share it."""

    def apply(call: Call) -> Tensor:
        gradient, x, indices = call.tensor("grad_output"), call.tensor(), call.tensor("indices")
        outer = x.shape[:-rank]
        updates, places = (each.reshape([*outer, product(each.shape[-rank:])]) for each in (gradient, indices))
        flat = [*outer, product(x.shape[-rank:])]
        return build.scatter(places, updates, len(outer), flat, reduction="add").reshape(x.shape)

    return apply


def _spread(call: Call, gradient: Tensor, axis: int, own: Dim) -> Tensor:
    size = gradient.shape[axis]
    if size == own:
        return gradient
    if size == 1:
        shape = [own if place == axis else dim for place, dim in enumerate(gradient.shape)]
        return (gradient / build.dim_value(call.builder, own, gradient.dtype)).expand(shape)
    table, inside = _table(call, own, size)
    if not isinstance(own, int) or table.shape[0] * own > MAX_CELLS:
        call.fail(f"windows of {own} elements for {size} gradients are more than the {MAX_CELLS} that are listed")
    is_in = np.zeros((table.shape[0], own), bool)
    for row, (places, used) in enumerate(zip(table, inside, strict=True)):
        is_in[row, places[used]] = True
    counts = is_in.sum(1).astype(gradient.dtype.numpy)
    moved = build.moveaxis(gradient, axis, -1) / call.builder.constant(counts, gradient.dtype)
    # Not a product with a 0/1 mask, which would turn infinite gradients to NaN.
    spread = build.where(call.builder.constant(is_in), moved.unsqueeze(-1), 0.0).sum([-2])
    return build.moveaxis(spread, -1, axis)


def _cells(call: Call, x: Tensor, axis: int, size: Dim) -> tuple[Tensor, np.ndarray]:
    """The elements of each window on a new axis after `axis`, and the mask of valid ones."""
    table, inside = _table(call, x.shape[axis], size)
    return build.take(x, x.builder.constant(table), axis), inside


def _table(call: Call, own: Dim, size: Dim) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(own, int) or not isinstance(size, int):
        call.fail(f"windows of {own} elements for {size} results must be known")
    if size > MAX_CELLS or own > MAX_CELLS:
        call.fail(f"{own} elements are pooled to {size}, and at most {MAX_CELLS} can be")
    starts = [place * own // size for place in range(size)]
    ends = [-(-(place + 1) * own // size) for place in range(size)]
    longest = max((end - start for start, end in zip(starts, ends, strict=True)), default=1)
    # Shorter windows repeat their last element.
    spans = list(zip(starts, ends, strict=True))
    table = np.array([[min(start + tap, end - 1) for tap in range(longest)] for start, end in spans], np.int64)
    inside = np.array([[start + tap < end for tap in range(longest)] for start, end in spans])
    return table.reshape(size, longest), inside.reshape(size, longest)


def _adaptive_greatest(call: Call) -> list[Tensor]:
    x, wanted = call.tensor(), call.dims("output_size")
    if call.is_read(1):
        return list(_with_places(call, x, wanted))
    for axis, size in zip(range(x.rank - len(wanted), x.rank), wanted, strict=True):
        if size == 1:
            x = x.max([axis], True)
        elif size != x.shape[axis]:
            # Repeated elements do not change a maximum.
            x = _cells(call, x, axis, size)[0].max([axis + 1])
    return [x]


def _with_places(call: Call, x: Tensor, wanted: Sequence[Dim]) -> tuple[Tensor, Tensor]:
    """The maximum of each window of adaptive pooling, and the position of the first one in the flattened image."""
    places, below = build.zeros(x.builder, x.shape, DType.INT64), 1
    for axis, size in reversed([*zip(range(x.rank - len(wanted), x.rank), wanted, strict=True)]):
        table, _ = _table(call, x.shape[axis], size)
        cells = build.take(x, x.builder.constant(table), axis)
        chosen = build.argmax(cells, axis + 1, keepdims=True).cast(DType.INT64)
        own = x.builder.constant(table * below).reshape([*table.shape, *(1,) * (x.rank - 1 - axis)])
        inner = build.take(places, x.builder.constant(table), axis) + own
        below *= int(table.max(initial=-1)) + 1
        x, places = (build.gather(each, chosen, axis + 1).squeeze([axis + 1]) for each in (cells, inner))
    return x, places


def _greatest_gradient(rank: int) -> Operator:
    """Each gradient goes to the position of its window's maximum: for every tap, from windows whose maximum it is."""

    def apply(call: Call) -> Tensor:
        gradient, x, indices = call.tensor("grad_output"), call.tensor(), call.tensor("indices")
        kernel, stride, padding, dilation = _window(call, rank)
        if call.flag("ceil_mode"):
            call.fail("gradients of pooling with ceil_mode are not supported")
        counts = gradient.shape[-rank:]

        def part(tap: int) -> Tensor:
            number = gradient.builder.scalar(tap, DType.INT64).reshape([1] * rank).expand(counts)
            here = _position(x, number, counts, kernel, stride, padding, dilation)
            return build.where(build.equal(indices, here), gradient, 0)

        return folded(part, x.shape, counts, kernel, stride, padding, dilation)

    return apply


def _average_gradient(rank: int) -> Operator:
    """Each gradient is divided equally among the elements of its window."""

    def apply(call: Call) -> Tensor:
        gradient, x = call.tensor("grad_output"), call.tensor()
        kernel, stride, padding, dilation = _window(call, rank)
        if call.flag("ceil_mode"):
            call.fail("gradients of pooling with ceil_mode are not supported")
        if call.has("divisor_override"):
            parts = gradient / call.number("divisor_override")
        elif call.flag("count_include_pad", True) or not any(padding):
            parts = gradient / float(math.prod(kernel))
        else:
            ones = build.ones(x.builder, x.shape[-rank:], gradient.dtype)
            counted = build.avg_pool(ones, kernel, stride, padding, 1, False, True, rank=rank)
            parts = gradient / (counted * float(math.prod(kernel)))
        return folded(lambda _: parts, x.shape, gradient.shape[-rank:], kernel, stride, padding, dilation)

    return apply


def folded(
    part: Callable[[int], Tensor],
    shape: Sequence[Dim],
    counts: Sequence[Dim],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Add up overlapping windows to an image of `shape`; `part(tap)` is the value of each window at a tap."""
    rank, lead = len(kernel), len(shape) - len(kernel)
    whole = [dim + 2 * width for dim, width in zip(shape[lead:], padding, strict=True)]
    total: Tensor | None = None
    if math.prod(kernel) > MAX_TAPS:
        raise UnsupportedGraphError(f"a window of {math.prod(kernel)} elements is larger than the {MAX_TAPS} added up")
    for number in range(math.prod(kernel)):
        piece = part(number)
        flat = piece.reshape([1, product(piece.shape[:lead]), *piece.shape[lead:]])
        widths: list[tuple[Dim, Dim]] = [(0, 0), (0, 0)]
        for axis in range(rank):
            tap = number // math.prod(kernel[axis + 1 :]) % kernel[axis]
            offset = tap * dilation[axis]
            reach = (counts[axis] - 1) * stride[axis] + 1
            widths.append((offset, sub(whole[axis], reach + offset)))
        placed = build.pad(spread_spatial(flat, stride), widths)
        total = placed if total is None else total + placed
    assert total is not None, "a window has elements"
    limits = [(width, width + dim) for width, dim in zip(padding, shape[lead:], strict=True)]
    return build.shrink(total, [(0, dim) for dim in total.shape[:2]] + limits).reshape(shape)


def _fold(call: Call) -> Tensor:
    """`col2im`: add up columns of windows to an image."""
    x, image = call.tensor(), call.integers("output_size")
    kernel, stride, padding, dilation = (
        call.integers(name) for name in ("kernel_size", "stride", "padding", "dilation")
    )
    batch = x if x.rank == 3 else x.unsqueeze(0)
    taps = math.prod(kernel)
    channels = batch.shape[1]
    if not isinstance(channels, int) or channels % taps:
        call.fail(f"{channels} channels must be a known multiple of the {taps} elements of a window")
    counts = [
        (size + 2 * width - (length - 1) * apart - 1) // step + 1
        for size, width, length, apart, step in zip(image, padding, kernel, dilation, stride, strict=True)
    ]
    cells = batch.reshape([batch.shape[0], channels // taps, taps, *counts])
    shape = [batch.shape[0], channels // taps, *image]
    found = folded(
        lambda tap: build.shrink(
            cells, [(tap, tap + 1) if axis == 2 else (0, dim) for axis, dim in enumerate(cells.shape)]
        ).squeeze(2),
        *(shape, counts, kernel, stride, padding, dilation),
    )
    return found if x.rank == 3 else found.squeeze(0)


def _unfold(call: Call) -> Tensor:
    """`im2col`: the windows of an image as columns."""
    x = call.tensor()
    kernel, stride, padding, dilation = (
        call.integers(name) for name in ("kernel_size", "stride", "padding", "dilation")
    )
    batch = x if x.rank == 4 else x.unsqueeze(0)
    padded = build.pad(batch, [(0, 0), (0, 0), *((width, width) for width in padding)])
    windows = plain_windows(padded, window(padded, kernel, stride, dilation, 2))
    count, channels, rows, columns = windows.shape[:4]
    moved = windows.permute([0, 1, 4, 5, 2, 3])
    found = moved.reshape([count, product([channels, *kernel]), product([rows, columns])])
    return found if x.rank == 4 else found.squeeze(0)


OPERATORS: dict[str, Operator] = {
    "aten._adaptive_avg_pool2d.default": _adaptive_average(2),
    "aten._adaptive_avg_pool2d_backward.default": _adaptive_average_gradient(2),
    "aten._adaptive_avg_pool3d.default": _adaptive_average(3),
    "aten._adaptive_avg_pool3d_backward.default": _adaptive_average_gradient(3),
    "aten.adaptive_avg_pool1d.default": _adaptive_average(1),
    "aten.adaptive_avg_pool2d.default": _adaptive_average(2),
    "aten.adaptive_max_pool2d.default": _adaptive_greatest,
    "aten.adaptive_max_pool2d_backward.default": _adaptive_greatest_gradient(2),
    "aten.adaptive_max_pool3d.default": _adaptive_greatest,
    "aten.adaptive_max_pool3d_backward.default": _adaptive_greatest_gradient(3),
    "aten.avg_pool1d.default": _average(1),
    "aten.avg_pool2d.default": _average(2),
    "aten.avg_pool2d_backward.default": _average_gradient(2),
    "aten.avg_pool3d.default": _average(3),
    "aten.avg_pool3d_backward.default": _average_gradient(3),
    "aten.col2im.default": _fold,
    "aten.im2col.default": _unfold,
    "aten.max_pool2d.default": _greatest(2),
    "aten.max_pool2d_with_indices.default": _greatest(2),
    "aten.max_pool2d_with_indices_backward.default": _greatest_gradient(2),
    "aten.max_pool3d_with_indices.default": _greatest(3),
    "aten.max_pool3d_with_indices_backward.default": _greatest_gradient(3),
}
