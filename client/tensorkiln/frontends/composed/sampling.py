"""Grid sampling: interpolated values of an image at computed positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product as combinations
from operator import add, mul

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim, product
from .refusal import Refusal, unsupported
from .resampling import CUBIC, cubic


def sampled(
    x: Tensor,
    grid: Tensor,
    mode: str,
    padding: str,
    aligns: bool,
    *,
    rounds_first: bool = False,
    refuse: Refusal = unsupported,
) -> Tensor:
    """Sample images with any number of spatial axes; the last axis of the grid runs over these, innermost first.

    `mode` is linear, nearest or cubic, `padding` zeros, border or reflection. A coordinate of -1 or 1 is an end of the
    image: the centre of its last element with `aligns`, else that element's border. `rounds_first` rounds to the
    nearest element before padding is applied. `refuse` is called for cubic sampling unless there are two spatial axes.
    """
    rank = x.rank - 2
    if mode == "cubic" and rank != 2:
        refuse(f"cubic sampling is of two spatial axes, not of {rank}")
    wide = grid if grid.dtype is DType.FLOAT64 else grid.cast(DType.FLOAT32)
    sizes = [build.dim_value(x.builder, dim, wide.dtype) for dim in x.shape[2:]]
    taps: list[list[tuple[Tensor, Tensor]]] = []
    for axis, size in enumerate(sizes):
        place = _denormalised(wide[..., rank - 1 - axis], size, aligns)
        if mode == "nearest" and rounds_first:
            place = build.rint(place)
        if padding != "zeros" and mode != "cubic":
            place = _within(place, size, padding, aligns)
        taps.append(_TAPS[mode](place))
    flat = x.reshape([*x.shape[:2], product(x.shape[2:])])
    points = product(grid.shape[1:-1])
    parts: list[Tensor] = []
    for chosen in combinations(*taps):
        weight = reduce(mul, (weight for _, weight in chosen))
        value = read_at(x, flat, [place for place, _ in chosen], sizes, points, padding, aligns)
        parts.append(value * weight.reshape([grid.shape[0], 1, points]).cast(x.dtype))
    return reduce(add, parts).reshape([*x.shape[:2], *grid.shape[1:-1]])


def _denormalised(place: Tensor, size: Tensor, aligns: bool) -> Tensor:
    """Convert coordinates from -1 … 1 to element positions; with `aligns`, -1 and 1 are centres of elements."""
    return (place + 1.0) * 0.5 * (size - 1.0) if aligns else ((place + 1.0) * size - 1.0) * 0.5


def _within(place: Tensor, size: Tensor, padding: str, aligns: bool) -> Tensor:
    if padding == "reflection":
        low, span = (0.0, size - 1.0) if aligns else (-0.5, size)
        # An axis of one element has span 0: avoid a division by it.
        turn = build.maximum(span, 1e-6) * 2.0
        away = build.absolute(place - low)
        rest = away - build.floor(away / turn) * turn
        place = build.minimum(rest, turn - rest) + low
    return build.minimum(build.maximum(place, 0.0), size - 1.0)


def _nearest(place: Tensor) -> list[tuple[Tensor, Tensor]]:
    return [(build.rint(place), build.ones(place.builder, place.shape, place.dtype))]


def linear_taps(place: Tensor) -> list[tuple[Tensor, Tensor]]:
    first = build.floor(place)
    after = place - first
    return [(first, 1.0 - after), (first + 1.0, after)]


def _cubic(place: Tensor) -> list[tuple[Tensor, Tensor]]:
    first = build.floor(place)
    after = place - first
    found: list[tuple[Tensor, Tensor]] = []
    for tap in (-1, 0, 1, 2):
        away = build.absolute(after - float(tap))
        near, far = cubic(away, CUBIC)
        found.append((first + float(tap), near if tap in (0, 1) else far))
    return found


_TAPS: dict[str, Callable[[Tensor], list[tuple[Tensor, Tensor]]]] = {
    "nearest": _nearest,
    "linear": linear_taps,
    "cubic": _cubic,
}


def read_at(
    x: Tensor,
    flat: Tensor,
    places: Sequence[Tensor],
    sizes: Sequence[Tensor],
    points: Dim,
    padding: str,
    aligns: bool,
) -> Tensor:
    """The elements at whole positions; outside the image zeros, or by `padding`."""
    batch, channels = x.shape[:2]
    index: Tensor | None = None
    inside: Tensor | None = None
    for place, size, dim in zip(places, sizes, x.shape[2:], strict=True):
        held = place if padding == "zeros" else _within(place, size, padding, aligns)
        is_in = (held >= 0.0) & (held <= size - 1.0)
        whole = build.where(is_in, held, 0.0).cast(DType.INT64)
        index = whole if index is None else index * build.dim_value(x.builder, dim) + whole
        inside = is_in if inside is None else inside & is_in
    assert index is not None, "an image has spatial axes"
    assert inside is not None, "an image has spatial axes"
    shape = [batch, 1, points]
    read = build.gather(flat, index.reshape(shape).expand([batch, channels, points]), 2)
    return build.where(inside.reshape(shape), read, 0)
