"""Gradients of upsampling: each element gets those of the elements that were computed from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...expr import Dim, mul
from ..composed.resampling import CUBIC, MAX_TABLE, Axis, Way, resampled_gradient
from .call import Call, Operator
from .resizing import SMOOTHED_CUBIC, nearest_places, scales

_POWERS: Final = (2, 4, 8, 16, 32)


def _axes(call: Call, rank: int) -> Iterator[tuple[int, Dim, Dim, float | None]]:
    """The position of each axis that was resized, its sizes before and after, and the given scale."""
    before, gradient = call.dims("input_size"), call.tensor("grad_output")
    for axis, scale in zip(range(gradient.rank - rank, gradient.rank), scales(call, rank), strict=True):
        yield axis, before[axis], gradient.shape[axis], scale


def _gradient(call: Call) -> Tensor:
    return widened(call.tensor("grad_output"))


def _nearest(rank: int, centred: bool = False) -> Operator:
    def apply(call: Call) -> Tensor:
        found = _gradient(call)
        for axis, own, resized, scale in _axes(call, rank):
            found = _summed(call, found, axis, own, resized, scale, centred)
        return found.cast(call.dtype)

    return apply


def _summed(call: Call, x: Tensor, axis: int, own: Dim, resized: Dim, scale: float | None, centred: bool) -> Tensor:
    """The sum of the gradients of each element."""
    times = next((each for each in _POWERS if mul(own, each) == resized and scale in (None, each)), 0)
    if times:
        return x.reshape([*x.shape[:axis], own, times, *x.shape[axis + 1 :]]).sum([axis + 1])
    own, resized = _known(call, axis, own, resized)
    places = call.parameter(nearest_places(own, resized, scale, centred))
    column = places.reshape([1 if at != axis else -1 for at in range(x.rank)]).expand(x.shape)
    shape = [own if at == axis else dim for at, dim in enumerate(x.shape)]
    return build.scatter(column, x, axis, shape, reduction="add")


def _smooth(rank: int, mode: str, antialias: bool = False) -> Operator:
    def apply(call: Call) -> Tensor:
        found, aligns = _gradient(call), call.flag("align_corners")
        coordinates, coefficient = "align_corners" if aligns else "half_pixel", SMOOTHED_CUBIC if antialias else CUBIC
        way = Way(mode, coordinates, cubic=coefficient, antialias=antialias, excludes_outside=antialias)
        for axis, before, after, scale in _axes(call, rank):
            if before == after and (aligns or scale in (None, 1.0)):
                continue
            own, resized = _known(call, axis, before, after)
            made = Axis(own, resized, scale if scale and not aligns else resized / own)
            found = resampled_gradient(found, axis, made, way, table=call.parameter, refuse=call.fail)
        return found.cast(call.dtype)

    return apply


def _known(call: Call, axis: int, own: Dim, resized: Dim) -> tuple[int, int]:
    if not isinstance(own, int) or not isinstance(resized, int):
        call.fail(f"axis {axis} of {own} elements was resized to {resized}: both must be known")
    if resized > MAX_TABLE:
        call.fail(f"axis {axis} was resized to {resized} elements, more than {MAX_TABLE}")
    return own, resized


OPERATORS: dict[str, Operator] = {
    "aten._upsample_bicubic2d_aa_backward.default": _smooth(2, "cubic", True),
    "aten._upsample_bilinear2d_aa_backward.default": _smooth(2, "linear", True),
    "aten._upsample_nearest_exact1d_backward.default": _nearest(1, True),
    "aten._upsample_nearest_exact2d_backward.default": _nearest(2, True),
    "aten._upsample_nearest_exact3d_backward.default": _nearest(3, True),
    "aten.upsample_bicubic2d_backward.default": _smooth(2, "cubic"),
    "aten.upsample_bilinear2d_backward.default": _smooth(2, "linear"),
    "aten.upsample_linear1d_backward.default": _smooth(1, "linear"),
    "aten.upsample_nearest1d_backward.default": _nearest(1),
    "aten.upsample_nearest2d_backward.default": _nearest(2),
    "aten.upsample_nearest3d_backward.default": _nearest(3),
    "aten.upsample_trilinear3d_backward.default": _smooth(3, "linear"),
}
