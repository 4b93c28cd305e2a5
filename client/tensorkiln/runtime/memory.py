"""Host memory in blocks that start on a cache line."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..errors import DeviceError

ALIGNMENT: Final = 64
"""Bytes: a cache line, and a vector register of the widest x86."""

Array = np.ndarray[Any, Any]


def arrays_begin_with_address() -> bool:
    """Whether NumPy arrays of this interpreter store their address as the first field after the object header."""
    if sys.implementation.name != "cpython":
        return False
    sample = np.empty(1, np.uint8)
    return _first_field(sample) == sample.ctypes.data


def _first_field(array: Array) -> int:
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


def _asked(array: Array) -> int:
    return array.ctypes.data


address_of: Final[Callable[[Array], int]] = _first_field if arrays_begin_with_address() else _asked
"""The address of an array's elements. `array.ctypes.data` takes ten times as long as reading the field `data` of
`PyArrayObject_fields`, which is part of the binary interface of NumPy 1 and 2 (numpy/ndarraytypes.h).
"""


def is_plain(array: Array) -> bool:
    """Whether a kernel can read the array without a copy."""
    return array.flags.c_contiguous and array.flags.aligned


class Block:
    """`size` writable bytes from `address` on, aligned to 64; contents undefined.

    `nbytes` is the number of bytes allocated. `frames` is the prepared state of the plans that have run in this block;
    it belongs to the block because it holds addresses into it. MemoryError when this machine has no room for it.
    """

    __slots__ = ("_bytes", "address", "frames", "nbytes", "size")

    def __init__(self, size: int) -> None:
        self._bytes = np.empty(size + ALIGNMENT, np.uint8)
        self.size: Final = size
        self.nbytes: Final = self._bytes.nbytes
        self.address: Final[int] = round_up(address_of(self._bytes), ALIGNMENT)
        self.frames: Final[dict[object, Any]] = {}

    def view(self) -> ctypes.Array[ctypes.c_char]:
        """A new object over the bytes, which does not keep the block alive. NumPy arrays made from it keep it alive.

        (Arrays made from a memoryview would keep the viewed object alive, not the memoryview.)
        """
        return (ctypes.c_char * self.size).from_address(self.address)


def round_up(value: int, multiple: int) -> int:
    """The least multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def no_room(what: str, size: int) -> DeviceError:
    """The error for a failed allocation of `size` bytes; `what` is its subject with a verb, such as "a copy takes"."""
    return DeviceError(
        f"{what} {size} bytes, which this machine cannot allocate: call with smaller sizes, cut the graph into smaller "
        "ones, or free memory",
        details={"bytes": size},
    )


def fresh_array(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> tuple[Array, int, int]:
    """An uninitialized array at the start of `size` new aligned bytes: the array, its address, bytes allocated.

    MemoryError when this machine has no room for it.
    """
    base = np.empty(size + ALIGNMENT, np.uint8)
    start = address_of(base)
    padding = -start % ALIGNMENT
    return np.ndarray(shape, dtype, base, padding), start + padding, base.nbytes
