"""Resizing of an axis of unknown size by an integer factor."""

from __future__ import annotations

from typing import Final

import numpy as np

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim, mul
from .refusal import Refusal, unsupported
from .resampling import ROUND, Way, parts_of

MOST_TIMES: Final = 64
"""The largest factor: each of the `times` results per element adds nodes to the graph."""
_CENTRED: Final = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")


def multiplied(x: Tensor, place: int, times: int, way: Way, *, refuse: Refusal = unsupported) -> Tensor:
    """Resize the axis of `x` at `place` to `times` its elements; `times` is at least 2.

    Results at the same offset between elements have the same weights. `refuse` is called for options under which the
    ends of the axis are weighted differently.
    """
    if way.coordinates not in (*_CENTRED, "asymmetric") or way.excludes_outside or way.antialias:
        refuse(f"an axis of {x.shape[place]} elements is resized by {way.coordinates}: its size must be known")
    if times > MOST_TIMES:
        refuse(f"an axis of {x.shape[place]} elements becomes {times} times as long; the limit is {MOST_TIMES}")
    wide = x if way.mode == "nearest" or x.dtype.is_float else x.cast(DType.FLOAT32)
    between: list[Tensor] = []
    for part in range(times):
        at = part / times if way.coordinates == "asymmetric" else (part + 0.5) / times - 0.5
        if way.mode == "nearest":
            between.append(_away(wide, place, int(ROUND[way.rounding](np.asarray(at)))))
        else:
            around, weights = parts_of(at, way)
            terms = [_away(wide, place, int(o)) * float(w) for o, w in zip(around, weights, strict=True) if w]
            between.append(sum(terms[1:], terms[0]))
    shape: list[Dim] = list(x.shape)
    shape[place] = mul(shape[place], times)
    return build.stack(between, place + 1).reshape(shape)


def _away(x: Tensor, place: int, offset: int) -> Tensor:
    """For each element the one `offset` positions after it, clamped to the ends."""
    if offset == 0:
        return x
    size = build.dim_value(x.builder, x.shape[place])
    places = build.arange(x.builder, x.shape[place]) + offset
    return build.take(x, build.maximum(build.minimum(places, size - 1), 0), place)
