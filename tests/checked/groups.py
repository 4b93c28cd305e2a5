"""The work-groups of a launch in an order that nobody chose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

Range = tuple[int, int]
"""A half-open range of work-groups."""

MAX_RANGES = 6
"""Of a worker: as many as show that order does not matter; each has the price of poisoning its scratch."""


def shares(count: int, workers: int, random: Random) -> Sequence[Sequence[Range]]:
    """`0 .. count - 1` in ranges of random lengths, dealt to the workers in random order; no worker is without one."""
    workers = max(1, min(workers, count))
    ranges = min(count, random.randint(workers, MAX_RANGES * workers))
    edges = [0, *sorted(random.sample(range(1, count), max(ranges - 1, 0))), count]
    dealt = list(pairwise(edges))
    random.shuffle(dealt)
    return [dealt[worker::workers] for worker in range(workers)]
