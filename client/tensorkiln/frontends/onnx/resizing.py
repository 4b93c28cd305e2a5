"""Resize and Upsample."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim, mul
from ..composed.multiplying import MOST_TIMES, multiplied
from ..composed.resampling import CUBIC, Axis, Way, resampled
from .node import Node
from .value import Value

COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"),
    "tf_crop_and_resize",
)
MODES = ("nearest", "linear", "cubic")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resize(node: Node) -> Value:
    x = node.tensor(0)
    way = Way(
        node.choice("mode", MODES, "nearest"),
        node.choice("coordinate_transformation_mode", COORDINATES, "half_pixel") if node.opset >= 11 else "asymmetric",
        node.choice("nearest_mode", ROUNDINGS, "round_prefer_floor") if node.opset >= 11 else "floor",
        node.number("cubic_coeff_a", CUBIC) if node.opset >= 11 else CUBIC,
        node.integer("exclude_outside", 0) == 1 if node.opset >= 11 else False,
        node.integer("antialias", 0) == 1 if node.opset >= 18 else False,
    )
    over = node.integers("axes", list(range(x.rank))) if node.opset >= 18 else list(range(x.rank))
    chosen = [axis % x.rank for axis in over]
    outside = node.number("extrapolation_value", 0.0) if node.opset >= 11 else 0.0
    own = x.dtype
    for place, (size, scale) in zip(chosen, _targets(node, x, chosen), strict=True):
        dim = x.shape[place]
        roi = _roi(node, chosen.index(place), len(chosen), way)
        if scale == 1 and size == dim and roi == (0.0, 1.0):
            continue
        if not isinstance(dim, int):
            x = _multiplied(node, x, place, scale, way)
            continue
        if not isinstance(size, int):
            node.fail(f"axis {place} of {dim} elements is resized to {size}, which must be known")
        axis = Axis(dim, size, scale, roi)
        x = resampled(x, place, axis, way, outside, table=node.parameter, refuse=node.fail)
    return _as(own, x)


def _as(dtype: DType, x: Tensor) -> Tensor:
    """Cast to `dtype`; for integers, round and saturate first."""
    if x.dtype is dtype or not dtype.is_integer:
        return x.cast(dtype)
    return build.rint(x).clip(float(dtype.min), float(dtype.max)).cast(dtype)


def upsample(node: Node) -> Value:
    """Upsample, the predecessor of Resize before opset 10."""
    x = node.tensor(0)
    mode = node.choice("mode", ("nearest", "linear"), "nearest")
    scales = node.numbers("scales") if node.opset < 9 else node.host(1).reshape(-1).tolist()
    way = Way(mode, "asymmetric", "floor", CUBIC, excludes_outside=False, antialias=False)
    own = x.dtype
    for place, scale in enumerate(scales):
        dim = x.shape[place]
        if scale == 1:
            continue
        if not isinstance(dim, int):
            x = _multiplied(node, x, place, scale, way)
            continue
        axis = Axis(dim, math.floor(dim * scale), scale, (0.0, 1.0))
        x = resampled(x, place, axis, way, table=node.parameter, refuse=node.fail)
    return _as(own, x)


def _targets(node: Node, x: Tensor, chosen: Sequence[int]) -> list[tuple[Dim, float]]:
    """The size and the scale of each chosen axis."""
    own = [x.shape[axis] for axis in chosen]
    scales_at = 1 if node.opset < 11 else 2
    if node.has(scales_at) and node.host(scales_at).size:
        scales = [float(scale) for scale in node.host(scales_at).reshape(-1).tolist()]
        if len(scales) != len(own):
            node.invalid(f"{len(scales)} scales are given for {len(own)} axes")
        node.ignore("keep_aspect_ratio_policy")
        return [(_scaled(dim, scale), scale) for dim, scale in zip(own, scales, strict=True)]
    sizes = node.host(3).reshape(-1).tolist()
    if len(sizes) != len(own):
        node.invalid(f"{len(sizes)} sizes are given for {len(own)} axes")
    policy = node.choice("keep_aspect_ratio_policy", ("stretch", "not_larger", "not_smaller"), "stretch")
    known = [(size, _scale(dim, size)) for size, dim in zip(sizes, own, strict=True)]
    if policy == "stretch":
        return known
    if not all(isinstance(dim, int) for dim in own):
        node.fail(f"axes of {', '.join(map(str, own))} elements keep their proportions: their sizes must be known")
    scale = (min if policy == "not_larger" else max)(scale for _, scale in known)
    return [(math.floor(dim * scale + 0.5) if isinstance(dim, int) else dim, scale) for dim in own]


def _scale(dim: Dim, size: Dim) -> float:
    """The scale from `dim` to `size`; NaN if it depends on symbols."""
    if size == dim:
        return 1.0
    if isinstance(dim, int) and isinstance(size, int):
        return size / dim
    return float(next((times for times in range(2, MOST_TIMES + 1) if mul(dim, times) == size), math.nan))


def _scaled(dim: Dim, scale: float) -> Dim:
    return math.floor(dim * scale) if isinstance(dim, int) else mul(dim, max(int(scale), 1))


def _multiplied(node: Node, x: Tensor, place: int, scale: float, way: Way) -> Tensor:
    if not (scale > 1 and scale == int(scale)):
        node.fail(
            f"axis {place} of {x.shape[place]} elements is resized by a factor that is not a whole number: "
            "its size must be known"
        )
    return multiplied(x, place, int(scale), way, refuse=node.fail)


def _roi(node: Node, place: int, count: int, way: Way) -> tuple[float, float]:
    if way.coordinates != "tf_crop_and_resize":
        return 0.0, 1.0
    roi = node.host(1).reshape(-1).tolist()
    return float(roi[place]), float(roi[place + count])


OPERATORS: dict[str, Callable[[Node], Value]] = {"Resize": resize, "Upsample": upsample}
