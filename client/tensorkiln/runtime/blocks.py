"""Blocks of host memory reused between calls: page faults of fresh memory would take a quarter of a call's time."""

from __future__ import annotations

import weakref
from typing import Any, Final

import numpy as np

from .memory import Array, Block, fresh_array, no_room
from .pool import MAX_IDLE, Pool

LEAST_LENT: Final = 128 << 10
"""Bytes of the smallest array in a block: malloc reuses smaller ones (default M_MMAP_THRESHOLD of mallopt(3))."""


class BlockPool(Pool[Block]):
    """Blocks of the host's memory."""

    def __init__(self, *, slack: bool, max_idle: int = MAX_IDLE) -> None:
        super().__init__(self._allocated, slack=slack, max_idle=max_idle)

    def _allocated(self, size: int) -> Block:
        try:
            return Block(size)
        except MemoryError:
            self.drop()
            return Block(size)

    def take(self, size: int) -> Block:
        """A block of at least `size` bytes for this caller alone. DeviceError when this machine has no room for it."""
        try:
            return super().take(size)
        except MemoryError as error:
            raise no_room("the temporaries of a call take", size) from error

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> tuple[Array, int, int]:
        """An uninitialized array at the start of `size` aligned bytes: the array, its address, bytes allocated.

        An array of `LEAST_LENT` bytes or more is in a block, which returns to the pool when the array and all its views
        are gone. MemoryError when this machine has no room for it.
        """
        if size < LEAST_LENT:
            return fresh_array(shape, dtype, size)
        block = super().take(size)
        view: Any = block.view()
        weakref.finalize(view, self.give, block).atexit = False
        return np.ndarray(shape, dtype, view), block.address, block.nbytes
