"""A pool of memory blocks that calls borrow and return."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

MAX_IDLE: Final = 8
_PAGE: Final = 4096


class AnyBlock(Protocol):
    """Memory of the host or of a device."""

    @property
    def size(self) -> int:
        """Bytes."""
        ...


B = TypeVar("B", bound=AnyBlock)


class Pool(Generic[B]):
    """Lends blocks made by `allocate(size)`, the most recently used first. Thread-safe.

    A block serves a request when it is at most a tenth and a page larger, so that a call's memory stays close to its
    plan. With `slack`, a new block is 1/16 larger than requested, so that a slowly growing symbol can reuse it.
    """

    def __init__(self, allocate: Callable[[int], B], *, slack: bool, max_idle: int = MAX_IDLE) -> None:
        self._allocate = allocate
        self._slack = slack
        self._max_idle = max_idle
        self._idle: list[B] = []
        self._returned: deque[B] = deque()
        self._lock = threading.Lock()

    def take(self, size: int) -> B:
        """A block of at least `size` bytes, for this caller alone."""
        most = size + size // 10 + _PAGE
        with self._lock:
            self._settle()
            for position in range(len(self._idle) - 1, -1, -1):
                if size <= self._idle[position].size <= most:
                    return self._idle.pop(position)
        return self._allocate(size + size // 16 if self._slack else size)

    def give(self, block: B) -> None:
        """Return a block; with more than `max_idle` idle blocks, the longest idle are dropped.

        Never blocks: a finalizer may call this at any time, even while its own thread is inside `take`.
        """
        self._returned.append(block)
        if self._lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self._lock.release()

    def drop(self) -> None:
        """Drop all idle blocks."""
        with self._lock:
            self._settle()
            self._idle.clear()

    def _settle(self) -> None:
        while self._returned:
            self._idle.append(self._returned.popleft())
        while len(self._idle) > self._max_idle:
            del self._idle[0]
