"""Where each temporary lies in the arena: two share bytes only when they are never needed at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .memory import ALIGNMENT, round_up

_Ints = np.ndarray[Any, np.dtype[np.int64]]


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
    placed = np.empty((0, 4), np.int64)
    offsets = {interval.key: 0 for interval in intervals}
    for interval in sorted(intervals, key=lambda interval: (-interval.size, interval.first, interval.key)):
        if not interval.size:
            continue
        is_neighbour = (placed[:, 2] <= interval.last) & (placed[:, 3] >= interval.first)
        offset = _best_fit(interval, placed[is_neighbour, 0], placed[is_neighbour, 1], alignment)
        row = (offset, offset + interval.size, interval.first, interval.last)
        placed = np.insert(placed, np.searchsorted(placed[:, 0], offset), row, axis=0)
        offsets[interval.key] = offset
    return ArenaPlan(offsets, round_up(int(placed[:, 1].max(initial=0)), alignment))


def _best_fit(interval: Interval, starts: _Ints, stops: _Ints, alignment: int) -> int:
    """The offset of the tightest gap between neighbours sorted by start, or the first free byte behind all of them."""
    candidates = np.zeros(len(stops) + 1, np.int64)
    np.maximum.accumulate(stops, out=candidates[1:])
    candidates = -(-candidates // alignment) * alignment
    slack = starts - candidates[:-1] - interval.size
    fitting = np.flatnonzero(slack >= 0)
    best = fitting[np.argmin(slack[fitting])] if len(fitting) else -1
    return int(candidates[best])
