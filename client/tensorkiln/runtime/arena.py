"""Where each temporary lies in the arena: two share bytes only when they are never needed at the same time."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .memory import ALIGNMENT, round_up

_Placed = tuple[int, int, int, int]
"""First byte, the one behind the last, first and last step."""


@dataclass(frozen=True, slots=True)
class Interval:
    """`size` bytes that are needed at the steps `first` to `last`, inclusive."""

    key: int
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """The byte offset of every interval by its key, and the size of the arena in bytes."""

    offsets: Mapping[int, int]
    size: int


def plan_arena(intervals: Sequence[Interval], alignment: int = ALIGNMENT) -> ArenaPlan:
    """Greedy by size, best fit: the largest interval first, each into the tightest gap that its lifetime leaves.

    The heuristic "greedy by size for offset calculation" of Pisarchyk and Lee, "Efficient Memory Management for Deep
    Neural Net Inference" (2020). Offsets are multiples of `alignment` bytes.
    """
    placed: list[_Placed] = []
    offsets = {interval.key: 0 for interval in intervals}
    for interval in sorted(intervals, key=lambda interval: (-interval.size, interval.first, interval.key)):
        if not interval.size:
            continue
        offset = _best_fit(interval, placed, alignment)
        insort(placed, (offset, offset + interval.size, interval.first, interval.last))
        offsets[interval.key] = offset
    return ArenaPlan(offsets, round_up(max((stop for _, stop, _, _ in placed), default=0), alignment))


def _best_fit(interval: Interval, placed: Sequence[_Placed], alignment: int) -> int:
    """The offset of the tightest gap between those needed at the same time, or the first free byte behind all of them.

    `placed` is sorted by start.
    """
    free, best, tightest = 0, None, None
    for start, stop, first, last in placed:
        if first > interval.last or last < interval.first:
            continue
        slack = start - free - interval.size
        if slack >= 0 and (tightest is None or slack < tightest):
            best, tightest = free, slack
        if stop > free:
            free = round_up(stop, alignment)
    return free if best is None else best
