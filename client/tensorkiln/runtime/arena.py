"""Placement of temporaries in the arena: two may share bytes only if their live ranges do not overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .memory import ALIGNMENT, round_up


@dataclass(frozen=True, slots=True)
class Interval:
    """`size` bytes that are live from step `first` to step `last`, inclusive."""

    key: int
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """The byte offset of every interval by its key, and the size of the arena in bytes."""

    offsets: Mapping[int, int]
    size: int


class Arena:
    """The interference of intervals, from their lifetimes alone, for sizes that change from call to call.

    `lifetimes` are the first and the last step of each interval. Intervals of equal size are placed in order of their
    first step, then of position. Offsets are multiples of `alignment` bytes.
    """

    def __init__(self, lifetimes: Sequence[tuple[int, int]], alignment: int = ALIGNMENT) -> None:
        self._alignment = alignment
        self._in_order = sorted(range(len(lifetimes)), key=lambda place: lifetimes[place][0])
        self._neighbours: list[list[int]] = [[] for _ in lifetimes]
        alive: list[int] = []
        for own in self._in_order:
            alive = [other for other in alive if lifetimes[other][1] >= lifetimes[own][0]]
            for other in alive:
                self._neighbours[own].append(other)
                self._neighbours[other].append(own)
            alive.append(own)

    def place(self, sizes: Sequence[int]) -> list[int]:
        """The offset of every interval, then the size of the arena, in bytes.

        Greedy by size, best fit: the largest interval first, each into the tightest gap between placed intervals that
        are live at the same time. The heuristic "greedy by size for offset calculation" of Pisarchyk and Lee,
        "Efficient Memory Management for Deep Neural Net Inference" (2020).
        """
        spans: dict[int, tuple[int, int]] = {}
        offsets, alignment, end = [0] * len(sizes), self._alignment, 0
        for own in sorted(self._in_order, key=sizes.__getitem__, reverse=True):
            if not (size := sizes[own]):
                break
            placed = [spans[other] for other in self._neighbours[own] if other in spans]
            offset = _best_fit(size, placed, alignment) if placed else 0
            offsets[own], stop = offset, offset + size
            spans[own] = offset, stop
            if stop > end:
                end = stop
        offsets.append(round_up(end, alignment))
        return offsets


def plan_arena(intervals: Sequence[Interval], alignment: int = ALIGNMENT) -> ArenaPlan:
    """Place intervals, given in the order of their keys."""
    arena = _arena(tuple((interval.first, interval.last) for interval in intervals), alignment)
    *offsets, size = arena.place([interval.size for interval in intervals])
    return ArenaPlan({interval.key: offset for interval, offset in zip(intervals, offsets, strict=True)}, size)


@lru_cache(maxsize=256)
def _arena(lifetimes: tuple[tuple[int, int], ...], alignment: int) -> Arena:
    """Cached, because a program has the same lifetimes at every call."""
    return Arena(lifetimes, alignment)


def _best_fit(size: int, placed: list[tuple[int, int]], alignment: int) -> int:
    """The offset of the tightest gap between the spans `placed`, or the first free byte behind all of them."""
    free, best, tightest = 0, -1, 0
    if len(placed) > 1:
        placed.sort()
    for start, stop in placed:
        slack = start - free - size
        if slack >= 0 and (best < 0 or slack < tightest):
            best, tightest = free, slack
        if stop > free:
            free = -(-stop // alignment) * alignment
    return free if best < 0 else best
