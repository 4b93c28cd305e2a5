"""Host memory in blocks that start on a cache line."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

ALIGNMENT: Final = 64
"""Bytes: a cache line, and a vector register of the widest x86."""

Array = np.ndarray[Any, Any]


class Block:
    """`size` writable bytes from `address` on, aligned to 64; contents undefined.

    `nbytes` is what was really allocated. `frames` is the prepared state of the plans that have run in this block; it
    lives here because it consists of addresses into the block.
    """

    __slots__ = ("_bytes", "address", "frames", "nbytes", "size")

    def __init__(self, size: int) -> None:
        self._bytes = np.empty(size + ALIGNMENT, np.uint8)
        self.size: Final = size
        self.nbytes: Final = self._bytes.nbytes
        self.address: Final[int] = round_up(self._bytes.ctypes.data, ALIGNMENT)
        self.frames: Final[dict[object, Any]] = {}


def round_up(value: int, multiple: int) -> int:
    """The least multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def fresh_array(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> tuple[Array, int, int]:
    """An undefined array at the start of `size` aligned bytes of its own: the array, its address, bytes allocated."""
    base = np.empty(size + ALIGNMENT, np.uint8)
    start = base.ctypes.data
    padding = -start % ALIGNMENT
    return np.ndarray(shape, dtype, base, padding), start + padding, base.nbytes
