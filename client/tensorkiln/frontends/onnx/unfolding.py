"""Operators on positions in windows: MaxPool with indices, MaxUnpool, Col2Im."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

from ... import build
from ...build import Tensor
from ...build.windows import plain_windows, window
from ...dtypes import DType
from ...expr import Dim, product
from ..composed.spreading import spread_spatial
from . import axes
from .node import Node
from .value import Value
from .window import window_attributes


def pooled_with_indices(node: Node) -> list[Tensor]:
    """The maximum of each window and its position in the flattened input; the first of equal elements."""
    x, kernel = node.tensor(0), node.integers("kernel_shape")
    found = window_attributes(node, x, kernel)
    if node.integer("ceil_mode", 0):
        node.fail("the output Indices is not supported with ceil_mode")
    rank, spatial = len(kernel), x.shape[2:]
    over = window(x, kernel, found.strides, found.dilations, rank)
    widths = [(0, 0), (0, 0), *found.padding]
    # Row-major positions; column-major if `storage_order` is set.
    order = list(range(rank)) if not node.integer("storage_order", 0) else list(reversed(range(rank)))
    places = build.arange(x.builder, product(spatial)).reshape([spatial[axis] for axis in order]).permute(order)
    lowest = float("-inf") if x.dtype.is_float else x.dtype.min
    values = plain_windows(build.pad(x, widths, lowest), over)
    numbers = plain_windows(build.pad(places.unsqueeze([0, 1]), widths), over)
    counts, size = values.shape[: 2 + rank], math.prod(kernel)
    values, numbers = values.reshape([*counts, size]), numbers.reshape([1, 1, *counts[2:], size])
    real = plain_windows(build.pad(build.ones(x.builder, (1, 1, *spatial), DType.BOOL), widths), over)
    greatest = values.max([-1], keepdims=True)
    is_greatest = build.equal(values, greatest) | build.is_nan(values) if x.dtype.is_float else values == greatest
    # Padding is never chosen, even if it equals the least element.
    found_at = is_greatest & real.reshape([1, 1, *counts[2:], size])
    first = build.argmax(found_at.cast(DType.INT32), -1, True).cast(DType.INT64)
    inside = build.gather(numbers.expand([*counts, size]), first, -1).squeeze([-1])
    images = build.arange(x.builder, product(counts[:2])) * build.dim_value(x.builder, product(spatial))
    return [greatest.squeeze([-1]), inside + images.reshape([*counts[:2], *(1,) * rank])]


def max_unpool(node: Node) -> Value:
    """Write each element to its MaxPool position, with zeros elsewhere."""
    x, indices = node.tensor(0), node.tensor(1)
    kernel = node.integers("kernel_shape")
    found = window_attributes(node, x, kernel)
    own: list[Dim] = [*x.shape[:2]]
    for dim, size, stride, (before, after) in zip(x.shape[2:], kernel, found.strides, found.padding, strict=True):
        own.append((dim - 1) * stride + size - before - after)
    count = product(x.shape)
    flat = build.scatter(indices.reshape([count]), x.reshape([count]), 0, [product(own)]).reshape(own)
    if not node.has(2):
        return flat
    wanted = axes.integers(node, node.host(2))
    return build.pad(flat, [(0, whole - dim) for whole, dim in zip(wanted, own, strict=True)])


def col2im(node: Node) -> Value:
    """Convert columns of blocks to an image; overlapping blocks are summed."""
    x = node.tensor(0)
    image, block = (axes.integers(node, node.host(place)) for place in (1, 2))
    rank = len(image)
    strides, dilations = node.integers("strides", [1] * rank), node.integers("dilations", [1] * rank)
    pads = node.integers("pads", [0] * 2 * rank)
    whole = [size + pads[axis] + pads[axis + rank] for axis, size in enumerate(image)]
    counts = [
        (size - (taps - 1) * dilation - 1) // stride + 1
        for size, taps, dilation, stride in zip(whole, block, dilations, strides, strict=True)
    ]
    batch, columns = x.shape[0], x.shape[1]
    if not isinstance(columns, int) or columns % math.prod(block):
        node.invalid(f"{columns} rows of columns do not divide into blocks of {block}")
    channels = columns // math.prod(block)
    parts = x.reshape([batch, channels, math.prod(block), *counts])
    placed: list[Tensor] = []
    for number in range(math.prod(block)):
        offsets = [tap * dilation for tap, dilation in zip(_taps(number, block), dilations, strict=True)]
        piece = spread_spatial(parts[:, :, number], strides)
        around = [
            (offset, size - offset - ((count - 1) * stride + 1))
            for offset, size, count, stride in zip(offsets, whole, counts, strides, strict=True)
        ]
        placed.append(build.pad(piece, [(0, 0), (0, 0), *around]))
    return build.shrink(
        reduce(add, placed),
        [(0, batch), (0, channels), *((pads[axis], pads[axis] + size) for axis, size in enumerate(image))],
    )


def _taps(number: int, block: Sequence[int]) -> list[int]:
    found: list[int] = []
    for size in reversed(block):
        number, place = divmod(number, size)
        found.append(place)
    return found[::-1]


OPERATORS: dict[str, Callable[[Node], Value]] = {"Col2Im": col2im, "MaxUnpool": max_unpool}
