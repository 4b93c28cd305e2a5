"""DeformConv: a convolution that samples its input at positions moved by computed offsets."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import product as combinations
from operator import add, mul

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim, product
from ..composed.sampling import linear_taps, read_at
from .node import Node
from .value import Value
from .window import WindowAttributes, window_attributes


def deformable_convolution(node: Node) -> Value:
    """A deformable convolution with any number of spatial axes; zeros outside the image."""
    x, weight, offset = node.tensor(0), node.tensor(1), node.tensor(2)
    kernel = [dim for dim in weight.shape[2:] if isinstance(dim, int)]
    if node.integers("kernel_shape", kernel) != kernel or len(kernel) != weight.rank - 2:
        node.invalid(f"kernel_shape does not fit weights of the shape {weight.shape}")
    groups, offset_groups = node.integer("group", 1), node.integer("offset_group", 1)
    window = window_attributes(node, x, kernel)
    batch, channels, *_ = x.shape
    outputs, per_group = weight.shape[:2]
    taps = product(kernel)
    if not all(isinstance(dim, int) for dim in (channels, outputs, per_group)):
        node.fail("the numbers of channels depend on symbols")
    if channels != per_group * groups or outputs % groups or channels % offset_groups:
        node.invalid(
            f"{channels} channels and {outputs} outputs do not fit {groups} groups and {offset_groups} of offsets"
        )
    spatial = offset.shape[2:]
    if offset.shape[1] != offset_groups * taps * len(kernel):
        node.invalid(f"offsets of {offset.shape[1]} channels do not fit {offset_groups} groups of {taps} places")
    _check_extent(node, x, spatial, kernel, window)
    wide = DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32
    image = x.reshape([batch * offset_groups, channels // offset_groups, *x.shape[2:]]).cast(wide)
    moved = offset.cast(wide).reshape([batch * offset_groups, *kernel, len(kernel), *spatial])
    read = _sampled(image, moved, kernel, spatial, window)
    read = read.reshape([batch, offset_groups, channels // offset_groups, taps * product(spatial)])
    if node.has(4):
        read = read * node.tensor(4).cast(wide).reshape([batch, offset_groups, 1, taps * product(spatial)])
    columns = read.reshape([batch, groups, per_group * taps, product(spatial)])
    result = weight.cast(wide).reshape([groups, outputs // groups, per_group * taps]) @ columns
    result = result.reshape([batch, outputs, *spatial])
    if node.has(3):
        result = result + node.tensor(3).cast(wide).reshape([outputs, *(1,) * len(kernel)])
    return result.cast(x.dtype)


def _check_extent(node: Node, x: Tensor, spatial: tuple[Dim, ...], kernel: list[int], window: WindowAttributes) -> None:
    for axis, dim in enumerate(spatial):
        reach = (kernel[axis] - 1) * window.dilations[axis] + 1
        before, after = window.padding[axis]
        whole = (x.shape[2 + axis] + before + after - reach) // window.strides[axis] + 1
        if whole != dim:
            node.invalid(f"the offsets are of {dim} places along spatial axis {axis}, the convolution has {whole}")


def _sampled(
    image: Tensor, moved: Tensor, kernel: list[int], spatial: tuple[Dim, ...], window: WindowAttributes
) -> Tensor:
    """The interpolated values of each kernel tap at each position: (images, channels, taps * positions)."""
    rank = len(kernel)
    points = product([*kernel, *spatial])
    taps: list[list[tuple[Tensor, Tensor]]] = []
    for axis in range(rank):
        tap = build.arange(image.builder, kernel[axis]) * window.dilations[axis]
        start = build.arange(image.builder, spatial[axis]) * window.strides[axis]
        before = build.dim_value(image.builder, window.padding[axis][0])
        fixed = tap.reshape([-1, *(1,) * (2 * rank - 1 - axis)]) + (start - before).reshape(
            [-1, *(1,) * (rank - 1 - axis)]
        )
        own = moved[(slice(None), *(slice(None),) * rank, axis)]
        place = own + fixed.cast(own.dtype)
        taps.append(linear_taps(place))
    flat = image.reshape([*image.shape[:2], product(image.shape[2:])])
    sizes = [build.dim_value(image.builder, dim, image.dtype) for dim in image.shape[2:]]
    parts: list[Tensor] = []
    for chosen in combinations(*taps):
        weight = reduce(mul, (weight for _, weight in chosen)).reshape([image.shape[0], 1, points])
        parts.append(read_at(image, flat, [place for place, _ in chosen], sizes, points, "zeros", True) * weight)
    return reduce(add, parts)


OPERATORS: dict[str, Callable[[Node], Value]] = {"DeformConv": deformable_convolution}
