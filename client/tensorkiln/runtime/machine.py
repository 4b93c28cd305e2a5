"""Peak memory bandwidth and arithmetic throughput of this machine, measured by NumPy copies and matrix products."""

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
    """`gb_per_s`: 1e9 bytes read or written per second; `gflop_per_s`: 1e9 float32 operations per second."""

    gb_per_s: float
    gflop_per_s: float

    def least_ns(self, flops: int, moved: int) -> float:
        """The least nanoseconds for this much work: the larger of its compute time and its memory time."""
        return max(flops / self.gflop_per_s, moved / self.gb_per_s)

    def __str__(self) -> str:
        return f"{rate_text(self.gb_per_s)} GB/s, {rate_text(self.gflop_per_s)} GFLOP/s"


def rate_text(rate: float) -> str:
    """Three digits at least, without an exponent from 1 on."""
    return f"{rate:.3g}" if rate < 999.5 else f"{rate:.0f}"


@lru_cache(maxsize=8)
def measured(threads: int) -> Machine:
    """The peak of `threads` threads together: the best of a few tries of less than a second each.

    Copies are larger than most caches; a kernel whose data fit in a cache may exceed the measured bandwidth. Each
    thread computes a product of its own, because NumPy's BLAS chooses its number of threads itself.
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
