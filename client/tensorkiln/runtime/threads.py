"""The thread pool that kernels run on: one per process, created at first use."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final

MAX_THREADS: Final = 64
_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def available_processors() -> int:
    """Processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_pool() -> ThreadPoolExecutor:
    """The pool of the process. Its tasks must not wait for other tasks of the pool."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="tensorkiln")
        return _pool


def split(count: int, parts: int) -> tuple[tuple[int, int], ...]:
    """Split `0 .. count - 1` into `parts` contiguous half-open ranges whose lengths differ by at most one."""
    edges = [count * part // parts for part in range(parts + 1)]
    return tuple(pairwise(edges))


def _forget_pool() -> None:
    """Drop the pool in a forked child, which has the object but none of its threads."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
