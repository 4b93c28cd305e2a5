"""Running (prefix) reductions, by a table of which elements precede which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ... import build
from ...build import Tensor
from .refusal import Refusal, unsupported

MAX_RUNNING: Final = 1 << 12
"""The longest axis, since the table has its square of elements."""


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
    """Reduce each element with those before it along `axis`.

    `combine` reduces the last axis of a table that has `neutral` in place of excluded elements. `refuse` is called for
    an axis longer than `MAX_RUNNING`.
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
