"""A launch under observation: every access is checked, and every store to a buffer is counted."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from .cells import cells_for
from .errors import OutOfBounds
from .memory import Allocation, Buffer, DeviceMemory
from .native import native
from .spans import Span
from .stacks import stacks

_SHARED: Final = 1
_READ_ONLY: Final = 2
_STORES: Final = 0xFFFF


class _Row(ctypes.Structure):
    """`%row` of watch.ll."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("cells", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
    )


@dataclass(frozen=True, slots=True)
class Tracks:
    """What the runtime reads and writes while a launch is watched; `cells` by the allocation's address."""

    rows: Any
    cells: dict[int, NDArray[np.uint32]]


class Watch:
    """What launches may touch, and what they did.

    A launch may read the allocations of `memory` that its arguments point into and, unless an address in `read_only` is
    theirs, write them; nothing else of the device's memory. Given a watch, it raises OutOfBounds, Misaligned,
    ReadOnlyWritten or Race at the first access that calls for it. Races are those of one launch: two threads use a
    byte, one changes it, and neither a barrier nor the atomicity of both accesses stands between them; race.ll has the
    rules.
    """

    def __init__(self, memory: DeviceMemory, read_only: Iterable[SupportsIndex] = ()) -> None:
        self._memory = memory
        self._read_only = {self._allocation(address.__index__()).address for address in read_only}
        self._stores: dict[int, NDArray[np.int64]] = {}

    def stores(self, buffer: Buffer) -> NDArray[np.int64]:
        """How often each byte of the buffer was stored to, in the shape `(*buffer.shape, itemsize)`.

        Stores of one thread in succession count as one, those of another thread or another launch anew. Storing the
        same value again counts.
        """
        allocation = self._allocation(buffer.address)
        counts = self._stores.get(allocation.address, np.zeros(allocation.size, np.int64))
        first = buffer.address - allocation.address
        return counts[first : first + buffer.nbytes].reshape(*buffer.shape, buffer.dtype.itemsize)

    def stored_once(self, buffer: Buffer) -> None:
        """AssertionError unless every byte of the buffer was stored to by exactly one thread."""
        counts = self.stores(buffer)
        for name, wrong in (("never stored to", counts == 0), ("stored to by several threads", counts > 1)):
            elements = wrong.any(axis=-1)
            if elements.any():
                first = tuple(int(index) for index in np.argwhere(elements)[0])
                raise AssertionError(f"{int(elements.sum())} of {elements.size} elements were {name}, first {first}")

    def named(self, pointers: Mapping[int, int]) -> list[Span]:
        """What the arguments with these positions point to: each from its address to the end of its allocation."""
        found = {slot: [a for a in self._memory.allocations if _contains(a, pointers[slot])] for slot in pointers}
        return [
            Span(f"argument {slot}", pointers[slot], allocation.address + allocation.size - pointers[slot])
            for slot, allocations in found.items()
            for allocation in allocations
        ]

    def begin(self, pointers: Iterable[int], shared: Sequence[Span], constants: Sequence[Span]) -> Tracks:
        """Set the runtime up for a launch with these pointers as arguments; keep the result until `end`."""
        wanted = set(pointers)
        used = [found for found in self._memory.allocations if any(_contains(found, address) for address in wanted)]
        locked = [allocation for allocation in used if allocation.address in self._read_only]
        tracked = [allocation for allocation in used if allocation.address not in self._read_only]
        cells = cells_for([span.size for span in (*tracked, *shared)])
        flags = [0] * len(tracked) + [_SHARED] * len(shared)
        rows = [
            *(
                _Row(span.address, span.size, cell.ctypes.data, flag)
                for span, cell, flag in zip((*tracked, *shared), cells, flags, strict=True)
            ),
            *(_Row(span.address, span.size, None, _READ_ONLY) for span in (*locked, *constants)),
        ]
        table = (_Row * len(rows))(*rows)
        runtime, private = native(), stacks()
        runtime.word("rows").value = ctypes.addressof(table)
        runtime.word("row_count").value = len(rows)
        runtime.word("private_begin").value = private.address
        runtime.word("private_bytes").value = private.size
        return Tracks(table, {span.address: cell for span, cell in zip(tracked, cells, strict=False)})

    def end(self, tracks: Tracks) -> None:
        """Count the stores of a launch that has ended."""
        for address, cells in tracks.cells.items():
            counts = (cells[:, 5] & _STORES).astype(np.int64)
            self._stores[address] = self._stores.get(address, np.zeros(counts.size, np.int64)) + counts

    def _allocation(self, address: int) -> Allocation:
        for allocation in self._memory.allocations:
            if _contains(allocation, address):
                return allocation
        raise OutOfBounds(f"{address:#x} is in no allocation of the watched memory")


def _contains(allocation: Allocation, address: int) -> bool:
    return allocation.address <= address < allocation.address + max(allocation.size, 1)
