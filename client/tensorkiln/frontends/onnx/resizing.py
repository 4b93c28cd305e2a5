"""Resize and Upsample: along each axis a table says how much of which elements an element of the result is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim
from .node import Node
from .value import Host, Value

Away = TypeVar("Away", Tensor, Host)

CUBIC: Final = -0.75
"""The coefficient of cubic convolution that ONNX takes unless it is told another."""
MAX_TABLE = 1 << 24
"""Numbers of a table for one axis."""
COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"),
    "tf_crop_and_resize",
)
MODES = ("nearest", "linear", "cubic")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True, slots=True)
class _Axis:
    """`size` elements become `resized`, by `scale`; `roi` is the part of the axis that is looked at."""

    size: int
    resized: int
    scale: float
    roi: tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Way:
    mode: str
    coordinates: str
    rounding: str
    cubic: float
    excludes_outside: bool
    antialias: bool


def resize(node: Node) -> Value:
    x = node.tensor(0)
    way = _Way(
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
        if not isinstance(dim, int) or not isinstance(size, int):
            node.fail(f"axis {place} of {dim} elements is resized, which must be known")
        axis = _Axis(dim, size, scale, roi)
        x = _resized(node, x, place, axis, way, outside)
    return _as(own, x)


def _as(dtype: DType, x: Tensor) -> Tensor:
    """Rounded and saturated once, where integers were resized as floats."""
    if x.dtype is dtype or not dtype.is_integer:
        return x.cast(dtype)
    return build.rint(x).clip(float(dtype.min), float(dtype.max)).cast(dtype)


def upsample(node: Node) -> Value:
    """What Resize was before opset 10."""
    x = node.tensor(0)
    mode = node.choice("mode", ("nearest", "linear"), "nearest")
    scales = node.numbers("scales") if node.opset < 9 else node.host(1).reshape(-1).tolist()
    way = _Way(mode, "asymmetric", "floor", CUBIC, excludes_outside=False, antialias=False)
    own = x.dtype
    for place, scale in enumerate(scales):
        dim = x.shape[place]
        if scale == 1:
            continue
        if not isinstance(dim, int):
            node.fail(f"axis {place} of {dim} elements is resized, which must be known")
        x = _resized(node, x, place, _Axis(dim, math.floor(dim * scale), scale, (0.0, 1.0)), way, 0.0)
    return _as(own, x)


def _targets(node: Node, x: Tensor, chosen: Sequence[int]) -> list[tuple[Dim, float]]:
    """The size and the scale of each axis that is chosen."""
    own = [x.shape[axis] for axis in chosen]
    scales_at = 1 if node.opset < 11 else 2
    if node.has(scales_at) and node.host(scales_at).size:
        scales = [float(scale) for scale in node.host(scales_at).reshape(-1).tolist()]
        if len(scales) != len(own):
            node.invalid(f"{len(scales)} scales are given for {len(own)} axes")
        node.ignore("keep_aspect_ratio_policy")
        return [(_scaled(node, dim, scale), scale) for dim, scale in zip(own, scales, strict=True)]
    sizes = node.host(3).reshape(-1).tolist()
    if len(sizes) != len(own):
        node.invalid(f"{len(sizes)} sizes are given for {len(own)} axes")
    policy = node.choice("keep_aspect_ratio_policy", ("stretch", "not_larger", "not_smaller"), "stretch")
    known = [
        (size, 1.0 if size == dim else size / dim if isinstance(dim, int) and isinstance(size, int) else math.nan)
        for size, dim in zip(sizes, own, strict=True)
    ]
    if policy == "stretch":
        return known
    scale = (min if policy == "not_larger" else max)(scale for _, scale in known)
    return [(math.floor(dim * scale + 0.5) if isinstance(dim, int) else dim, scale) for dim in own]


def _scaled(node: Node, dim: Dim, scale: float) -> Dim:
    if scale == 1:
        return dim
    if not isinstance(dim, int):
        node.fail(f"an axis of {dim} elements is scaled by {scale}, and must be known")
    return math.floor(dim * scale)


def _roi(node: Node, place: int, count: int, way: _Way) -> tuple[float, float]:
    if way.coordinates != "tf_crop_and_resize":
        return 0.0, 1.0
    roi = node.host(1).reshape(-1).tolist()
    return float(roi[place]), float(roi[place + count])


def _resized(node: Node, x: Tensor, place: int, axis: _Axis, way: _Way, outside: float) -> Tensor:
    size = axis.resized * (1 if way.mode == "nearest" else axis.size)
    if size > MAX_TABLE:
        node.fail(f"{axis.size} elements become {axis.resized} by a table of {size} numbers, more than {MAX_TABLE}")
    found = _coordinates(np.arange(axis.resized, dtype=np.float64), axis, way.coordinates)
    if way.mode == "nearest":
        positions = np.clip(_ROUND[way.rounding](found), 0, axis.size - 1).astype(np.int64)
        result = build.take(x, node.parameter(positions), place)
    else:
        table = np.stack([_weights(at, axis, way) for at in found]) if axis.resized else np.zeros((0, axis.size))
        moved = build.moveaxis(x, place, -1)
        wide = moved if moved.dtype.is_float else moved.cast(DType.FLOAT32)
        product = wide @ node.parameter(np.ascontiguousarray(table.T).astype(wide.dtype.numpy))
        result = build.moveaxis(product, -1, place)
    if way.coordinates != "tf_crop_and_resize":
        return result
    is_outside = (found < 0) | (found > axis.size - 1)
    if not is_outside.any():
        return result
    flags = node.parameter(is_outside.reshape([-1, *(1,) * (x.rank - 1 - place)]))
    return build.where(flags, node.parameter(np.asarray(outside)).cast(result.dtype), result)


def _coordinates(each: Host, axis: _Axis, how: str) -> Host:
    """Where in the original the elements of the result lie."""
    nothing = np.zeros_like(each)
    if how == "align_corners":
        # By the size that the scale asks for, which need not be whole.
        asked = axis.scale * axis.size
        return each * (axis.size - 1) / (asked - 1) if asked != 1 else nothing
    if how == "asymmetric":
        return each / axis.scale
    if how == "tf_crop_and_resize":
        start, end = axis.roi
        if axis.resized == 1:
            return nothing + 0.5 * (start + end) * (axis.size - 1)
        return start * (axis.size - 1) + each * (end - start) * (axis.size - 1) / (axis.resized - 1)
    if how == "pytorch_half_pixel" and axis.resized == 1:
        return nothing
    centred = (each + 0.5) / axis.scale - 0.5
    if how == "half_pixel_symmetric":
        return centred + axis.size / 2 * (1 - axis.resized / (axis.scale * axis.size))
    return centred


_ROUND: dict[str, Callable[[Host], Host]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _weights(at: float, axis: _Axis, way: _Way) -> Host:
    """How much of each element of the original is at a coordinate."""
    shrink = min(axis.scale, 1.0) if way.antialias else 1.0
    reach = (1 if way.mode == "linear" else 2) / shrink
    around = np.arange(math.floor(at - reach), math.ceil(at + reach) + 1)
    away = np.abs(around - at) * shrink
    parts = np.clip(1 - away, 0, None) if way.mode == "linear" else _cubic(away, way.cubic)
    if way.excludes_outside:
        parts = np.where((around >= 0) & (around < axis.size), parts, 0.0)
    if way.excludes_outside or way.antialias:
        parts = parts / parts.sum()
    row = np.zeros(axis.size)
    np.add.at(row, np.clip(around, 0, axis.size - 1), parts)
    return row


def cubic(away: Away, a: float) -> tuple[Away, Away]:
    """The kernel of cubic convolution (Keys 1981) at a distance of up to 1, and at one of 1 to 2."""
    near = ((a + 2) * away - (a + 3)) * away * away + 1.0
    far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
    return near, far


def _cubic(away: Host, a: float) -> Host:
    near, far = cubic(away, a)
    return np.where(away <= 1, near, np.where(away < 2, far, 0.0))


OPERATORS: dict[str, Callable[[Node], Value]] = {"Resize": resize, "Upsample": upsample}
