"""RoiAlign and MaxRoiPool: regions of images, each divided into the same number of cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import product
from .node import Node
from .value import Host, Value


@dataclass(frozen=True, slots=True)
class _Samples:
    """Samples along one axis, as tensors (regions, cells, samples).

    `ends` are the two neighbouring elements with their weights; `is_there` masks valid samples; `count` is their number
    in a cell.
    """

    ends: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]
    is_there: Tensor
    count: Tensor


def roi_align(node: Node) -> Value:
    """The average or maximum of interpolated samples, evenly spaced in each cell."""
    x, rois, images = node.tensor(0), node.tensor(1), node.tensor(2)
    if x.rank != 4:
        node.invalid(f"images of two spatial axes are of rank 4, not {x.rank}")
    modes = ("half_pixel", "output_half_pixel")
    is_half = node.opset >= 16 and node.choice("coordinate_transformation_mode", modes, modes[0]) == modes[0]
    is_average = node.choice("mode", ("avg", "max"), "avg") == "avg"
    ratio, scale = node.integer("sampling_ratio", 0), node.number("spatial_scale", 1.0)
    sizes = node.integer("output_height", 1), node.integer("output_width", 1)
    wide = DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32
    down, right = (
        _samples(
            node,
            x,
            rois.cast(wide) * scale - (0.5 if is_half else 0.0),
            axis,
            size,
            ratio,
            0.0 if is_half else 1.0,
            scale,
        )
        for axis, size in enumerate(sizes)
    )
    channels, shape = x.shape[1], [rois.shape[0], sizes[0], down.is_there.shape[2], sizes[1], right.is_there.shape[2]]
    flat = build.take(x.reshape([x.shape[0], channels, product(x.shape[2:])]).cast(wide), images, 0)
    width = build.dim_value(x.builder, x.shape[3])
    parts: list[Tensor] = []
    for row, row_weight in down.ends:
        for column, column_weight in right.ends:
            index = (_over_columns(row) * width + _over_rows(column)).reshape([shape[0], 1, product(shape[1:])])
            value = build.gather(flat, index.expand([shape[0], channels, product(shape[1:])]), 2)
            weight = (_over_columns(row_weight) * _over_rows(column_weight)).unsqueeze(1)
            parts.append(value.reshape([shape[0], channels, *shape[1:]]) * weight)
    is_there = (_over_columns(down.is_there) & _over_rows(right.is_there)).unsqueeze(1)
    if is_average:
        total = build.where(is_there, parts[0] + parts[1] + parts[2] + parts[3], 0.0).sum([3, 5])
        return (total / build.maximum(down.count * right.count, 1.0).reshape([-1, 1, 1, 1])).cast(x.dtype)
    most = build.maximum(build.maximum(parts[0], parts[1]), build.maximum(parts[2], parts[3]))
    found = build.where(is_there, most, float("-inf")).max([3, 5])
    return build.where(is_there.any([3, 5]), found, 0.0).cast(x.dtype)


def _over_columns(x: Tensor) -> Tensor:
    """(regions, rows, samples) beside the axes of columns and their samples."""
    return x.unsqueeze([3, 4])


def _over_rows(x: Tensor) -> Tensor:
    return x.unsqueeze([1, 2])


def _samples(
    node: Node, x: Tensor, rois: Tensor, axis: int, cells: int, ratio: int, least: float, scale: float
) -> _Samples:
    """The samples along an axis (0 for rows). A nonzero `least` is the minimum extent of a region."""
    start, extent = rois[:, 1 - axis], rois[:, 3 - axis] - rois[:, 1 - axis]
    extent = build.maximum(extent, least) if least else extent
    counts = np.asarray([ratio]) if ratio > 0 else _counts(node, axis, cells, least, scale)
    most = max(int(counts.max(initial=1)), 1)
    count = node.parameter(counts.astype(rois.dtype.numpy))
    step = (extent / float(cells)).reshape([-1, 1, 1])
    cell, sample = (build.arange(x.builder, size).cast(rois.dtype) for size in (cells, most))
    place = start.reshape([-1, 1, 1]) + cell.unsqueeze([1]) * step
    place = place + (sample + 0.5) * step / count.reshape([-1, 1, 1])
    size = build.dim_value(x.builder, x.shape[2 + axis], rois.dtype)
    is_inside = (place >= -1.0) & (place <= size)
    held = build.maximum(place, 0.0)
    low = build.minimum(build.floor(held), size - 1.0)
    after = build.where(low >= size - 1.0, 0.0, held - low)
    high = build.minimum(low + 1.0, size - 1.0)
    # A NaN position is outside.
    ends = tuple(
        (build.where(is_inside, at, 0.0).cast(DType.INT64), build.where(is_inside, weight, 0.0))
        for at, weight in ((low, 1.0 - after), (high, after))
    )
    is_there = (sample < count.reshape([-1, 1, 1])).expand([rois.shape[0], cells, most])
    return _Samples((ends[0], ends[1]), is_there, count)


def _counts(node: Node, axis: int, cells: int, least: float, scale: float) -> Host:
    """The number of samples per cell for each region: the cell's extent in elements. Regions must be static."""
    rois = node.host(1).astype(np.float32) * np.float32(scale)
    extent = rois[:, 3 - axis] - rois[:, 1 - axis]
    return np.maximum(np.ceil(np.maximum(extent, least) / cells if least else extent / cells), 0).astype(np.int64)


def max_roi_pool(node: Node) -> Value:
    """The maximum of each cell, with ends rounded outwards; 0 for an empty cell."""
    x, rois = node.tensor(0), node.tensor(1)
    sizes, scale = node.integers("pooled_shape"), node.number("spatial_scale", 1.0)
    if x.rank != 4 or len(sizes) != 2:
        node.invalid(f"images of rank {x.rank} and a pooled_shape of {len(sizes)} are not those of two spatial axes")
    own = build.take(x, rois[:, 0].cast(DType.INT64), 0)
    # float16 cannot represent all integers above 2048.
    wide = DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32
    corners = rois[:, 1:].cast(wide) * scale
    # Halves are rounded away from 0.
    whole = build.where(corners < 0.0, build.ceil(corners - 0.5), build.floor(corners + 0.5))
    # Track empty cells separately, since an element may be -inf.
    has_any: list[Tensor] = []
    for axis in (3, 2):
        # In (regions, channels, rows, columns): the columns become cells first.
        start, end = whole[:, 3 - axis], whole[:, 5 - axis]
        step = build.maximum(end - start + 1.0, 1.0) / float(sizes[axis - 2])
        cell = build.arange(x.builder, sizes[axis - 2]).cast(wide)
        low = build.floor(cell * step.unsqueeze(1)) + start.unsqueeze(1)
        high = build.ceil((cell + 1.0) * step.unsqueeze(1)) + start.unsqueeze(1)
        place = build.arange(x.builder, x.shape[axis]).cast(wide)
        is_in = (place >= low.unsqueeze(2)) & (place < high.unsqueeze(2))
        moved = build.moveaxis(own, axis, -1).unsqueeze(3)
        found = build.where(is_in.unsqueeze([1, 2]), moved, float("-inf")).max([-1])
        own = build.moveaxis(found, -1, axis)
        has_any.append(is_in.any([-1]))
    columns, rows = has_any
    return build.where(rows.unsqueeze([1, 3]) & columns.unsqueeze([1, 2]), own, 0.0)


OPERATORS: dict[str, Callable[[Node], Value]] = {"MaxRoiPool": max_roi_pool, "RoiAlign": roi_align}
