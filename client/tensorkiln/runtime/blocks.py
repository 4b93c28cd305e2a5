"""Blocks kept warm between calls: fresh pages would cost a call a quarter of its time in page faults."""

from __future__ import annotations

import threading
from typing import Final

from .memory import Block

MAX_IDLE: Final = 8
_PAGE: Final = 4096


class BlockPool:
    """Lends blocks to calls, the most recently used first. Safe for several threads.

    A block serves a request when it is at most a tenth larger, so that what a call holds stays close to its plan. With
    `slack`, a new block is 1/16 larger than asked, so that a symbol that grows a little at each call reuses it.
    """

    def __init__(self, *, slack: bool) -> None:
        self._slack = slack
        self._idle: list[Block] = []
        self._lock = threading.Lock()

    def take(self, size: int) -> Block:
        """A block of at least `size` bytes that nobody else holds."""
        most = size + size // 10 + _PAGE
        with self._lock:
            for position in range(len(self._idle) - 1, -1, -1):
                if size <= self._idle[position].size <= most:
                    return self._idle.pop(position)
        return Block(size + size // 16 if self._slack else size)

    def give(self, block: Block) -> None:
        """Return a block; the one that has been idle longest is dropped when there are more than 8."""
        with self._lock:
            self._idle.append(block)
            if len(self._idle) > MAX_IDLE:
                del self._idle[0]
