"""Upsampling along the last axes, to a size or by a scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...expr import mul
from ..composed.multiplying import multiplied
from ..composed.resampling import CUBIC, MAX_TABLE, Axis, Way, resampled
from ..composed.sampling import sampled
from .call import Call, Operator

_POWERS: Final = (2, 4, 8, 16, 32)
SMOOTHED_CUBIC: Final = -0.5
"""torch's coefficient of cubic convolution with antialias."""


def _image(call: Call) -> Tensor:
    return call.tensor("input" if call.has("input") else "self")


def scales(call: Call, rank: int) -> Sequence[float | None]:
    """The given scale of each axis; None where it follows from the sizes."""
    given = call.value("scale_factors")
    if isinstance(given, tuple):
        return [float(each) if isinstance(each, int | float) else None for each in given]
    names = ("scales_d", "scales_h", "scales_w")[3 - rank :] if rank > 1 else ("scales",)
    return [call.number(name) if call.has(name) else None for name in names]


def _multiplied(call: Call, x: Tensor, rank: int, way: Way) -> Tensor:
    """Resize the axes of unknown size, by powers of two.

    For other factors, torch's float32 arithmetic may select another element.
    """
    for axis, scale in zip(range(x.rank - rank, x.rank), scales(call, rank), strict=True):
        own, wanted = x.shape[axis], call.result_shape()[axis]
        if isinstance(own, int) or own == wanted:
            continue
        times = next((each for each in _POWERS if mul(own, each) == wanted and scale in (None, each)), 0)
        if not times:
            call.fail(f"axis {axis} of {own} elements is resized to {wanted}: its size must be known, or be doubled")
        x = multiplied(x, axis, times, way, refuse=call.fail)
    return x


def _known(call: Call, x: Tensor, rank: int) -> list[tuple[int, int, int]]:
    """The position, the size and the new size of each axis; 1 and 1 for axes that `_multiplied` has resized."""
    found: list[tuple[int, int, int]] = []
    for axis in range(x.rank - rank, x.rank):
        own, wanted = _image(call).shape[axis], call.result_shape()[axis]
        if not isinstance(own, int):
            # Already resized.
            found.append((axis, 1, 1))
            continue
        if not isinstance(wanted, int):
            call.fail(f"axis {axis} of {own} elements is resized to {wanted}, which must be known")
        if wanted > MAX_TABLE:
            call.fail(f"axis {axis} is resized to {wanted} elements, more than {MAX_TABLE}")
        found.append((axis, own, wanted))
    return found


def _nearest(rank: int, centred: bool = False) -> Operator:
    """Nearest element as in torch, in float32: `floor(place * scale)`, or with element centres if `centred`."""

    def apply(call: Call) -> Tensor:
        x = _multiplied(call, _image(call), rank, Way("nearest", "asymmetric"))
        for (axis, own, wanted), scale in zip(_known(call, x, rank), scales(call, rank), strict=True):
            if own == wanted == 1:
                continue
            x = build.take(x, call.parameter(nearest_places(own, wanted, scale, centred)), axis)
        return x

    return apply


def nearest_places(own: int, wanted: int, scale: float | None, centred: bool) -> np.ndarray:
    """The place of the nearest of `own` elements for each of `wanted` ones, as int64."""
    step = np.float32(1 / scale) if scale else np.float32(own) / np.float32(wanted)
    each = np.arange(wanted, dtype=np.float32)
    places = np.floor((each + np.float32(0.5)) * step if centred else each * step)
    return np.minimum(places.astype(np.int64), own - 1)


def _smooth(rank: int, mode: str, antialias: bool = False) -> Operator:
    def apply(call: Call) -> Tensor:
        x, aligns = _image(call), call.flag("align_corners")
        if aligns and antialias:
            call.fail("antialias with align_corners is not supported; leave align_corners out")
        coordinates, coefficient = "align_corners" if aligns else "half_pixel", SMOOTHED_CUBIC if antialias else CUBIC
        way = Way(mode, coordinates, cubic=coefficient, antialias=antialias, excludes_outside=antialias)
        wide = _multiplied(call, widened(x), rank, way)
        for (axis, own, wanted), scale in zip(_known(call, x, rank), scales(call, rank), strict=True):
            if own == wanted == 1:
                continue
            if own != wanted or (scale not in (None, 1.0) and not aligns):
                factor = scale if scale and not aligns else wanted / own
                resized = Axis(own, wanted, factor)
                wide = resampled(wide, axis, resized, way, table=call.parameter, refuse=call.fail)
        return wide.cast(x.dtype)

    return apply


def _sampled(call: Call) -> Tensor:
    modes, paddings = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")
    mode, padding = (
        names[place] if 0 <= place < len(names) else call.fail(f"the mode {place} is not known")
        for names, place in ((modes, call.integer("interpolation_mode")), (paddings, call.integer("padding_mode")))
    )
    return sampled(
        call.tensor("input"), call.tensor("grid"), mode, padding, call.flag("align_corners"), refuse=call.fail
    )


OPERATORS: dict[str, Operator] = {
    "aten.grid_sampler_2d.default": _sampled,
    "aten.grid_sampler_3d.default": _sampled,
    "aten._upsample_bicubic2d_aa.default": _smooth(2, "cubic", True),
    "aten._upsample_bilinear2d_aa.default": _smooth(2, "linear", True),
    "aten._upsample_nearest_exact1d.vec": _nearest(1, True),
    "aten._upsample_nearest_exact2d.vec": _nearest(2, True),
    "aten._upsample_nearest_exact3d.vec": _nearest(3, True),
    "aten.upsample_bicubic2d.default": _smooth(2, "cubic"),
    "aten.upsample_bicubic2d.vec": _smooth(2, "cubic"),
    "aten.upsample_bilinear2d.default": _smooth(2, "linear"),
    "aten.upsample_bilinear2d.vec": _smooth(2, "linear"),
    "aten.upsample_linear1d.default": _smooth(1, "linear"),
    "aten.upsample_linear1d.vec": _smooth(1, "linear"),
    "aten.upsample_nearest1d.default": _nearest(1),
    "aten.upsample_nearest1d.vec": _nearest(1),
    "aten.upsample_nearest2d.default": _nearest(2),
    "aten.upsample_nearest2d.vec": _nearest(2),
    "aten.upsample_nearest3d.default": _nearest(3),
    "aten.upsample_nearest3d.vec": _nearest(3),
    "aten.upsample_trilinear3d.default": _smooth(3, "linear"),
    "aten.upsample_trilinear3d.vec": _smooth(3, "linear"),
}
