"""Stacks for a block's threads, mapped once a process and used by every launch."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass
from functools import cache
from typing import Final

from .native import MAX_THREADS

STACK_BYTES: Final = 256 << 10
"""Of one thread: its private arrays, and every value of its kernel when the code is not optimised."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """Stacks one after the other: the first is the scheduler's, the others the threads'."""

    memory: mmap.mmap
    address: int
    size: int


@cache
def stacks() -> Stacks:
    """The process's stacks. The lowest page of each is closed, so that an overflow stops instead of spreading."""
    size = (MAX_THREADS + 1) * STACK_BYTES
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for index in range(MAX_THREADS + 1):
        if protect(address + index * STACK_BYTES, mmap.PAGESIZE, 0):
            raise OSError(ctypes.get_errno(), "a stack's lowest page cannot be closed")
    return Stacks(memory, address, size)
