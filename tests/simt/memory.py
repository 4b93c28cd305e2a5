"""The device's memory: host memory in which every allocation lies between poisoned borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .errors import OutOfBounds

BORDER: Final = 4096
"""Poisoned bytes on either side of an allocation."""

ALIGNMENT: Final = 256
"""Of an allocation's address, as of cuMemAlloc's."""

_POISONS: Final = tuple(range(0xFFFE, 0xFFF7, -1))
"""Such a pair of bytes is a quiet NaN in float16 and bfloat16, as two are in float32 and four in float64.

Allocations take turns with them: a NaN goes through arithmetic unchanged, and must not look untouched elsewhere.
"""


@dataclass(frozen=True, slots=True)
class Allocation:
    """`size` bytes at `address`, which is as aligned as it was asked to be and no more."""

    address: int
    size: int
    poison: int
    storage: NDArray[np.uint8] = field(repr=False)
    offset: int = field(repr=False)

    @property
    def content(self) -> NDArray[np.uint8]:
        """The bytes themselves."""
        return self.storage[self.offset : self.offset + self.size]


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array in device memory. Passed to a launch, it is its address."""

    memory: DeviceMemory
    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __index__(self) -> int:
        return self.address

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def numpy(self) -> NDArray[Any]:
        """A copy on the host. OutOfBounds when a border of any allocation was written since the last look."""
        self.memory.check()
        return self.memory.read(self.address, self.nbytes).view(self.dtype).reshape(self.shape)

    def unwritten(self) -> NDArray[np.bool_]:
        """For each element, whether it is still poison.

        A kernel that computes from the buffer's own poison is misjudged. A watched launch knows for sure.
        """
        content = self.memory.read(self.address, self.nbytes)
        poison = self.memory.poison(self.address, content.size)
        return (content == poison).reshape(*self.shape, self.dtype.itemsize).all(axis=-1)


class DeviceMemory:
    """Allocations by address. What was not written reads as poison: a NaN, and in integers a number far from 0."""

    def __init__(self) -> None:
        self._allocations: dict[int, Allocation] = {}
        self._poisons = cycle(_POISONS)

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """What is allocated now."""
        return tuple(self._allocations.values())

    def allocate(self, size: int, alignment: int = ALIGNMENT) -> int:
        """The address of `size` poisoned bytes, a multiple of `alignment` and not of twice that."""
        slack = 4 * max(alignment, 2)
        storage = np.empty(2 * ((size + 2 * BORDER + slack + 1) // 2), np.uint8)
        poison = next(self._poisons)
        storage.view(np.uint16).fill(poison)
        first = storage.ctypes.data + BORDER
        coarse = 2 * alignment
        address = -(-first // coarse) * coarse + alignment
        self._allocations[address] = Allocation(address, size, poison, storage, address - storage.ctypes.data)
        return address

    def free(self, address: int) -> None:
        """Give the allocation that begins here back. OutOfBounds when there is none or a border of it was written."""
        allocation = self._allocations.pop(address, None)
        if allocation is None:
            raise OutOfBounds(f"no allocation of device memory begins at {address:#x}")
        self._check(allocation)

    def write(self, address: int, content: bytes | bytearray | memoryview | NDArray[Any]) -> None:
        """Copy bytes to device memory. OutOfBounds when they are not inside one allocation."""
        source = np.frombuffer(
            content if isinstance(content, (bytes, bytearray, memoryview)) else content.tobytes(), np.uint8
        )
        self._view(address, source.size)[:] = source

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """A copy of bytes of device memory. OutOfBounds when they are not inside one allocation."""
        return self._view(address, size).copy()

    def upload(self, array: NDArray[Any], alignment: int = ALIGNMENT) -> Buffer:
        """The array in device memory, in C order."""
        buffer = self.fresh(array.shape, array.dtype, alignment)
        self.write(buffer.address, array)
        return buffer

    def fresh(self, shape: Sequence[int], dtype: np.dtype[Any] | type[Any], alignment: int = ALIGNMENT) -> Buffer:
        """A poisoned array in device memory."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        return Buffer(self, self.allocate(size, alignment), tuple(shape), kind)

    def poison(self, address: int, size: int) -> NDArray[np.uint8]:
        """The bytes at an address as they were when they were allocated."""
        return _pattern(self._holder(address, size).poison, address, size)

    def check(self) -> None:
        """OutOfBounds when a border of any allocation was written."""
        for allocation in self._allocations.values():
            self._check(allocation)

    def _check(self, allocation: Allocation) -> None:
        begin, end = allocation.offset, allocation.offset + allocation.size
        for name, first, last in (("before", begin - BORDER, begin), ("after", end, end + BORDER)):
            border = allocation.storage[first:last]
            poison = _pattern(allocation.poison, allocation.storage.ctypes.data + first, border.size)
            damaged = np.flatnonzero(border != poison)
            if damaged.size:
                distance = begin - (first + int(damaged[-1])) if name == "before" else int(damaged[0]) + 1
                raise OutOfBounds(
                    f"{damaged.size} bytes {name} the allocation of {allocation.size} bytes at {allocation.address:#x} "
                    f"were written, the nearest {distance} {'byte' if distance == 1 else 'bytes'} away from it"
                )

    def _view(self, address: int, size: int) -> NDArray[np.uint8]:
        holder = self._holder(address, size)
        return holder.content[address - holder.address :][:size]

    def _holder(self, address: int, size: int) -> Allocation:
        for allocation in self._allocations.values():
            offset = address - allocation.address
            if offset >= 0 and offset + size <= allocation.size:
                return allocation
        raise OutOfBounds(f"{size} bytes at {address:#x} are not inside one allocation of device memory")


def _pattern(poison: int, address: int, size: int) -> NDArray[np.uint8]:
    phase = address % 2
    return np.full((size + 3) // 2, poison, np.uint16).view(np.uint8)[phase : phase + size]
