"""Runs of many histories, by consecutive seeds, on all processors."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from os import sched_getaffinity
from typing import Final

from .faults import FAULTS
from .history import History
from .promises import Broken
from .setting import simulated

_AT_A_TIME: Final = 50


def broken(seeds: Sequence[int], fault: str = "") -> list[tuple[int, str]]:
    """Run histories, optionally with an injected fault; returns the seeds with broken guarantees, and these.

    Other exceptions are raised, with a note of the seed.
    """
    found: list[tuple[int, str]] = []
    with simulated(), FAULTS[fault]() if fault else nullcontext():
        for seed in seeds:
            try:
                History(seed).run()
            except Broken as error:
                found.append((seed, str(error)))
            except BaseException as error:
                error.add_note(f"in the history of seed {seed}")
                raise
    return found


def all_broken(first: int, count: int, fault: str = "") -> Iterator[tuple[int, str]]:
    """Yield the results of `broken` for `count` seeds from `first` on, as they are found."""
    seeds = range(first, first + count)
    pieces = [seeds[at : at + _AT_A_TIME] for at in range(0, count, _AT_A_TIME)]
    with ProcessPoolExecutor(len(sched_getaffinity(0)), initializer=gc.freeze) as processes:
        for found in processes.map(partial(broken, fault=fault), pieces):
            yield from found
