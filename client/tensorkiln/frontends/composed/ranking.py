"""Sorting by rank, the number of elements that come before each, and choosing a few elements one after the other."""

from __future__ import annotations

from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim
from .refusal import Refusal, unsupported

MAX_RANKED: Final = 1 << 13
"""The longest axis, since each element is compared with all others."""
FEW: Final = 16
LONG: Final = 64
"""Most elements that are chosen one after the other, and the shortest static axis for which that takes less work."""


def first_in_order(
    x: Tensor, axis: int, count: Dim, is_largest: bool, refuse: Refusal = unsupported
) -> tuple[Tensor, Tensor]:
    """The `count` greatest or least elements along an axis in order, and their int64 positions.

    The order is stable; NaN is greater than all numbers, as in NumPy. `count` is at most the extent of the axis; equal
    to it, this is a sort. `refuse` is called for an axis longer than `MAX_RANKED`, unless at most `FEW` elements of a
    static one are asked for.
    """
    extent = x.shape[axis]
    moved = build.moveaxis(x, axis, -1)
    places = build.arange(x.builder, extent)
    is_long = isinstance(extent, int) and extent >= LONG
    has_keys = x.dtype.is_integer or x.dtype.bits >= DType.FLOAT16.bits
    if is_long and has_keys and isinstance(count, int) and 0 < count <= FEW:
        positions = _chosen(_keys(moved), places, range(count), is_largest)
        values = build.gather(moved, positions, -1)
        return build.moveaxis(values, -1, axis), build.moveaxis(positions, -1, axis)
    if x.builder.bounds(extent)[1] > MAX_RANKED:
        refuse(f"axis {axis} has the extent {extent}, which may be more than {MAX_RANKED}")
    own, other = moved.unsqueeze([-1]), moved.unsqueeze([-2])
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


def total_order(x: Tensor) -> Tensor:
    """Map floats to signed integers in the total order: -NaN, -inf, …, -0, +0, …, inf, NaN."""
    bits = x.bitcast(DType(f"int{x.dtype.bits}"))
    return bits ^ ((bits >> (x.dtype.bits - 1)) & int(bits.dtype.max))


def _keys(x: Tensor) -> Tensor:
    """Integers in the order of the elements: of floats, any NaN is the greatest, and -0 is 0."""
    if x.dtype.is_integer:
        return x
    keys = total_order(build.where(build.equal(x, 0), 0, x))
    return build.where(build.is_nan(x), keys.dtype.max, keys)


def _chosen(keys: Tensor, places: Tensor, turns: range, is_largest: bool) -> Tensor:
    """The positions of the first elements in order along the last axis, one in each turn."""
    chosen: list[Tensor] = []
    worst = keys.dtype.min if is_largest else keys.dtype.max
    left = build.full(keys.builder, keys.shape, True, DType.BOOL)
    for _ in turns:
        among = build.where(left, keys, worst)
        best = (among.max([-1]) if is_largest else among.min([-1])).unsqueeze([-1])
        is_best = left & build.equal(keys, best)
        place = build.where(is_best, places, places.dtype.max).min([-1])
        chosen.append(place)
        after = keys < best if is_largest else keys > best
        left = after | (build.equal(keys, best) & (places > place.unsqueeze([-1])))
    return build.stack(chosen, -1)


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
