"""Sorting by rank: the number of elements that come before each."""

from __future__ import annotations

from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim
from .refusal import Refusal, unsupported

MAX_RANKED: Final = 1 << 13
"""The longest axis, since each element is compared with all others."""


def first_in_order(
    x: Tensor, axis: int, count: Dim, is_largest: bool, refuse: Refusal = unsupported
) -> tuple[Tensor, Tensor]:
    """The `count` greatest or least elements along an axis in order, and their int64 positions.

    The order is stable; NaN is greater than all numbers, as in NumPy. `count` is at most the extent of the axis; equal
    to it, this is a sort. `refuse` is called for an axis longer than `MAX_RANKED`.
    """
    extent = x.shape[axis]
    if x.builder.bounds(extent)[1] > MAX_RANKED:
        refuse(f"axis {axis} has the extent {extent}, which may be more than {MAX_RANKED}")
    moved = build.moveaxis(x, axis, -1)
    own, other = moved.unsqueeze([-1]), moved.unsqueeze([-2])
    places = build.arange(x.builder, extent)
    before = other > own if is_largest else other < own
    if x.dtype.is_float:
        own_is_number, other_is_number = ~build.is_nan(own), ~build.is_nan(other)
        before = before | ((own_is_number & ~other_is_number) if is_largest else (other_is_number & ~own_is_number))
        same = build.equal(own, other) | ~(own_is_number | other_is_number)
    else:
        same = build.equal(own, other)
    rank = ranks(before, same)
    values, positions = (in_order(rank, each, count) for each in (moved, places.expand(moved.shape)))
    return build.moveaxis(values, -1, axis), build.moveaxis(positions, -1, axis)


def ranks(is_before: Tensor, is_same: Tensor) -> Tensor:
    """The place of each element in a stable order, int64: (…, n) for two tables (…, n, n).

    Entry [i, j] says whether element j comes before element i, or is the same in the order.
    """
    places = build.arange(is_before.builder, is_before.shape[-1])
    before = is_before | (is_same & (places < places.unsqueeze([1])))
    return before.cast(DType.INT64).sum([-1])


def in_order(rank: Tensor, values: Tensor, count: Dim) -> Tensor:
    """The first `count` values of the last axis, in the order of their ranks; both are (…, n)."""
    shape: list[Dim] = [*values.shape[:-1], count]
    # Ranks from `count` on are out of range, so the scatter drops them.
    return build.scatter(rank, values, values.rank - 1, shape)
