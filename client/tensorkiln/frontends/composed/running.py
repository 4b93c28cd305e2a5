"""Every element with those before it, all at once: a table says which these are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ... import build
from ...build import Tensor
from .refusal import Refusal, unsupported

MAX_RUNNING: Final = 1 << 12
"""Of an axis that is summed by a table of which elements come before which."""


def running(
    x: Tensor,
    axis: int,
    combine: Callable[[Tensor], Tensor],
    neutral: float,
    is_reversed: bool = False,
    is_exclusive: bool = False,
    *,
    refuse: Refusal = unsupported,
) -> Tensor:
    """What `combine` makes, along the last axis, of each element and those before it; `neutral` stands for the others.

    `refuse` is called for an axis of more than `MAX_RUNNING`.
    """
    extent = x.shape[axis]
    if x.builder.bounds(extent)[1] > MAX_RUNNING:
        refuse(f"axis {axis} has the extent {extent}, which may be more than {MAX_RUNNING}")
    moved = build.moveaxis(x, axis, -1)
    places = build.arange(x.builder, extent)
    own, other = places.unsqueeze([1]), places
    if is_reversed:
        own, other = other, own
    is_before = other < own if is_exclusive else other <= own
    table = build.where(is_before, moved.unsqueeze([-2]), neutral)
    return build.moveaxis(combine(table).cast(x.dtype), -1, axis)
