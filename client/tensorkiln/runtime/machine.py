"""What this machine does at most, as NumPy measures it: bytes that are copied, and operations of a matrix product."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

_COPIED_BYTES: Final = 64 << 20
_SIDE: Final = 768
_TRIES: Final = 4


@dataclass(frozen=True, slots=True)
class Machine:
    """`gb_per_s` in 1e9 bytes that are read or written, `gflop_per_s` in 1e9 operations on float32 in a second."""

    gb_per_s: float
    gflop_per_s: float

    def least_ns(self, flops: int, moved: int) -> float:
        """The nanoseconds that this much work takes at the least: the roof of the two that is lower."""
        return max(flops / self.gflop_per_s, moved / self.gb_per_s)


@lru_cache(maxsize=8)
def measured(threads: int) -> Machine:
    """What `threads` threads reach together: the best of a few tries, which take less than a second each.

    Memory is measured by copies that are larger than most caches; a kernel whose data lie in a cache may do better.
    The product is that of NumPy's BLAS, which takes threads by rules of its own: each thread has a product of its own.
    """
    copy = _best(threads, _copies, 2 * _COPIED_BYTES)
    return Machine(gb_per_s=copy, gflop_per_s=_best(threads, _products, 2 * _SIDE**3))


def _best(threads: int, make: Callable[[], Callable[[], Any]], work: int) -> float:
    tasks = [make() for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        spent = [_spent(pool, tasks) for _ in range(_TRIES)]
    return work * threads / min(spent)


def _spent(pool: ThreadPoolExecutor, tasks: list[Callable[[], Any]]) -> int:
    start = time.perf_counter_ns()
    for each in [pool.submit(task) for task in tasks]:
        each.result()
    return max(1, time.perf_counter_ns() - start)


def _copies() -> Callable[[], Any]:
    source, target = np.ones(_COPIED_BYTES // 8), np.zeros(_COPIED_BYTES // 8)
    return lambda: np.copyto(target, source)


def _products() -> Callable[[], Any]:
    left = np.ones((_SIDE, _SIDE), np.float32)
    return lambda: left @ left
