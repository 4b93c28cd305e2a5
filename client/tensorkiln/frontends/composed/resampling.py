"""Resizing by a table of weights per axis: each element of the result is a weighted sum of elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .refusal import Refusal, unsupported

Host: TypeAlias = "np.ndarray[Any, Any]"
Away = TypeVar("Away", Tensor, Host)

CUBIC: Final = -0.75
"""The default coefficient of cubic convolution in ONNX and torch."""
MAX_TABLE = 1 << 24
"""The most numbers in a table for one axis."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of `size` elements that becomes `resized` elements, by `scale`; `roi` is the region read, in 0 … 1."""

    size: int
    resized: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Way:
    """Options of a resize, in ONNX's terms: mode, coordinate transformation, and rounding to the nearest element."""

    mode: str
    coordinates: str
    rounding: str = "floor"
    cubic: float = CUBIC
    excludes_outside: bool = False
    antialias: bool = False


def resampled(
    x: Tensor,
    place: int,
    axis: Axis,
    way: Way,
    outside: float = 0.0,
    *,
    table: Callable[[Host], Tensor],
    refuse: Refusal = unsupported,
) -> Tensor:
    """Resize the axis of `x` at `place`. `table` makes a tensor of an array; `refuse` is called if it is too large."""
    size = axis.resized * (1 if way.mode == "nearest" else axis.size)
    if size > MAX_TABLE:
        refuse(f"{axis.size} elements become {axis.resized} by a table of {size} numbers, more than {MAX_TABLE}")
    found = _coordinates(np.arange(axis.resized, dtype=np.float64), axis, way.coordinates)
    if way.mode == "nearest":
        positions = np.clip(ROUND[way.rounding](found), 0, axis.size - 1).astype(np.int64)
        result = build.take(x, table(positions), place)
    else:
        moved = build.moveaxis(x, place, -1)
        wide = moved if moved.dtype.is_float else moved.cast(DType.FLOAT32)
        product = wide @ table(np.ascontiguousarray(_all_weights(axis, way).T).astype(wide.dtype.numpy))
        result = build.moveaxis(product, -1, place)
    if way.coordinates != "tf_crop_and_resize":
        return result
    is_outside = (found < 0) | (found > axis.size - 1)
    if not is_outside.any():
        return result
    flags = table(is_outside.reshape([-1, *(1,) * (x.rank - 1 - place)]))
    return build.where(flags, table(np.asarray(outside)).cast(result.dtype), result)


def resampled_gradient(
    gradient: Tensor,
    place: int,
    axis: Axis,
    way: Way,
    *,
    table: Callable[[Host], Tensor],
    refuse: Refusal = unsupported,
) -> Tensor:
    """The gradient of the original, of floats, from that of what `resampled` makes of it, in a mode with weights."""
    size = axis.resized * axis.size
    if size > MAX_TABLE:
        refuse(f"{axis.resized} gradients become {axis.size} by a table of {size} numbers, more than {MAX_TABLE}")
    weights = _all_weights(axis, way).astype(gradient.dtype.numpy)
    return build.moveaxis(build.moveaxis(gradient, place, -1) @ table(weights), -1, place)


def _all_weights(axis: Axis, way: Way) -> Host:
    """The weights of the elements of the original, a row for each of the result."""
    found = _coordinates(np.arange(axis.resized, dtype=np.float64), axis, way.coordinates)
    return np.stack([_weights(at, axis, way) for at in found]) if axis.resized else np.zeros((0, axis.size))


def _coordinates(each: Host, axis: Axis, how: str) -> Host:
    """The coordinates in the original of the elements of the result."""
    nothing = np.zeros_like(each)
    if how == "align_corners":
        # By the size times the scale, which may be fractional.
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


ROUND: dict[str, Callable[[Host], Host]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _weights(at: float, axis: Axis, way: Way) -> Host:
    """The weight of each element of the original at a coordinate."""
    around, parts = parts_of(at, way, min(axis.scale, 1.0) if way.antialias else 1.0)
    if way.excludes_outside:
        parts = np.where((around >= 0) & (around < axis.size), parts, 0.0)
    if way.excludes_outside or way.antialias:
        parts = parts / parts.sum()
    row = np.zeros(axis.size)
    np.add.at(row, np.clip(around, 0, axis.size - 1), parts)
    return row


def parts_of(at: float, way: Way, shrink: float = 1.0) -> tuple[Host, Host]:
    """The positions around a coordinate, ignoring the ends of the axis, and their weights."""
    reach = (1 if way.mode == "linear" else 2) / shrink
    around = np.arange(math.floor(at - reach), math.ceil(at + reach) + 1)
    away = np.abs(around - at) * shrink
    return around, np.clip(1 - away, 0, None) if way.mode == "linear" else _cubic(away, way.cubic)


def cubic(away: Away, a: float) -> tuple[Away, Away]:
    """The kernel of cubic convolution (Keys 1981) for distances up to 1, and for distances from 1 to 2."""
    near = ((a + 2) * away - (a + 3)) * away * away + 1.0
    far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
    return near, far


def _cubic(away: Host, a: float) -> Host:
    near, far = cubic(away, a)
    return np.where(away <= 1, near, np.where(away < 2, far, 0.0))
