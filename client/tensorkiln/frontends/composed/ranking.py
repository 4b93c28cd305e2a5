"""Sorting by rank, the number of elements that come before each, and selecting some elements one after the other."""

from __future__ import annotations

from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim
from .refusal import Refusal, unsupported
from .selecting import first_positions

MAX_RANKED: Final = 1 << 13
"""The longest axis whose elements are ranked, since each is compared with all others."""
MAX_SELECTED: Final = 1 << 16
"""Most elements that are selected one after the other: that takes some microseconds each."""
FEW: Final = 16
LONG: Final = 64
"""The first `FEW` elements of a static axis of at least `LONG` are selected."""
_RANKED_IN_A_TURN: Final = 1 << 14
"""Comparisons that take as long as selecting one element."""


def first_in_order(
    x: Tensor, axis: int, count: Dim, is_largest: bool, refuse: Refusal = unsupported
) -> tuple[Tensor, Tensor]:
    """The `count` greatest or least elements along an axis in order, and their int64 positions.

    The order is stable; NaN is greater than all numbers, as in NumPy. `count` is at most the extent of the axis; equal
    to it, this is a sort. `refuse` is called for an axis longer than `MAX_RANKED`, unless it is static and at most
    `MAX_SELECTED` elements are asked for.
    """
    extent = x.shape[axis]
    moved = build.moveaxis(x, axis, -1)
    places = build.arange(x.builder, extent)
    if isinstance(extent, int) and isinstance(count, int) and is_selected(x.dtype, extent, count):
        keys = keys_of(moved)
        positions = first_positions(keys if is_largest else reversed_keys(keys), count)
        values = build.gather(moved, positions, -1)
        return build.moveaxis(values, -1, axis), build.moveaxis(positions, -1, axis)
    if x.builder.bounds(extent)[1] > MAX_RANKED:
        few = f"; of a static one, {MAX_SELECTED} elements at most are selected, not {count}"
        refuse(f"axis {axis} has the extent {extent}, which may be more than {MAX_RANKED}{few}")
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


def is_selected(dtype: DType, extent: int, count: int) -> bool:
    """Whether to select elements one after the other, because that takes less time or because ranks are refused."""
    has_keys = dtype.is_integer or dtype.bits >= DType.FLOAT16.bits
    if not has_keys or not 0 < count <= MAX_SELECTED:
        return False
    if extent > MAX_RANKED:
        return True
    return extent >= LONG if count <= FEW else extent * extent > count * _RANKED_IN_A_TURN


def total_order(x: Tensor) -> Tensor:
    """Map floats to signed integers in the total order: -NaN, -inf, …, -0, +0, …, inf, NaN."""
    bits = x.bitcast(DType(f"int{x.dtype.bits}"))
    return bits ^ ((bits >> (x.dtype.bits - 1)) & int(bits.dtype.max))


def keys_of(x: Tensor) -> Tensor:
    """Integers in the order of the elements: of floats, any NaN is the greatest, and -0 is 0."""
    if x.dtype.is_integer:
        return x
    keys = total_order(build.where(build.equal(x, 0), 0, x))
    return build.where(build.is_nan(x), keys.dtype.max, keys)


def reversed_keys(keys: Tensor) -> Tensor:
    """Integers in the opposite order."""
    return (keys.dtype.max if keys.dtype.min == 0 else -1) - keys


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
