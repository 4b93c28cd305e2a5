"""Random assignment of a launch's work-groups to workers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

Range = tuple[int, int]
"""A half-open range of work-groups."""

MAX_RANGES = 6
"""The most ranges per worker: enough to reveal a dependence on order; before each, the scratch is poisoned."""


def shares(count: int, workers: int, random: Random) -> Sequence[Sequence[Range]]:
    """Split `0 .. count - 1` into random ranges, and deal these to the workers in random order, at least one each."""
    workers = max(1, min(workers, count))
    ranges = min(count, random.randint(workers, MAX_RANGES * workers))
    edges = [0, *sorted(random.sample(range(1, count), max(ranges - 1, 0))), count]
    dealt = list(pairwise(edges))
    random.shuffle(dealt)
    return [dealt[worker::workers] for worker in range(workers)]
