"""Memory in which every array is adjacent to an inaccessible page."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

PAGE: Final = mmap.PAGESIZE
GUARD: Final = 1 << 24
"""Inaccessible bytes on either side of an array; large, since wrong row indices give distant addresses."""


_MAP_NORESERVE: Final = 0x4000
"""Linux's flag: reserve no swap space for the guards."""


class Access(Enum):
    """Access rights of a region; the values are those of mprotect."""

    NONE = 0
    READ = mmap.PROT_READ
    WRITE = mmap.PROT_READ | mmap.PROT_WRITE


@dataclass(frozen=True, slots=True)
class Way:
    """A memory layout of a call.

    `poison` fills unwritten memory, two bytes at a time. `at_end`: arrays end at a guard; otherwise they begin at one.
    """

    at_end: bool
    poison: int

    def __str__(self) -> str:
        return f"every buffer {'ends' if self.at_end else 'begins'} at a guard"


WAYS: Final = (Way(at_end=True, poison=0xFFFE), Way(at_end=False, poison=0x7B7B))
"""One poison is NaN in every float type, the other a large finite number, so that results that depend on it differ."""


@dataclass(slots=True)
class Region:
    """`size` bytes from `address` on, in its own pages at the offsets `first` to `last` of the memory.

    The rest of the pages is poison.
    """

    number: int
    address: int
    size: int
    first: int
    last: int
    access: Access = Access.NONE
    is_fresh: bool = True


class GuardedMemory:
    """Regions between guards. A region is inaccessible until it is opened; the first opening poisons it."""

    def __init__(self, way: Way, extents: Sequence[tuple[int, int]]) -> None:
        """`extents` are the size and the alignment of each region in bytes; alignments are at most a page."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._poison = np.full(PAGE // 2, way.poison, np.uint16).tobytes()
        self._poison_pair = way.poison
        pages = [-(-size // PAGE) * PAGE for size, _ in extents]
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        self._mapping = mmap.mmap(-1, sum(pages) + GUARD * (len(pages) + 1), flags=flags)
        self._bytes: Bytes = np.frombuffer(self._mapping, np.uint8)
        self.address: int = self._bytes.ctypes.data
        self._protect(0, len(self._bytes), Access.NONE)
        self.regions = tuple(self._regions(way, extents, pages))

    def _regions(self, way: Way, extents: Sequence[tuple[int, int]], pages: Sequence[int]) -> Iterator[Region]:
        first = GUARD
        for number, (size, alignment), held in zip(count(), extents, pages, strict=False):
            gap = (held - size) // alignment * alignment if way.at_end else 0
            yield Region(number, self.address + first + gap, size, first, first + held)
            first += held + GUARD

    def open(self, region: Region, access: Access) -> None:
        """Set the access rights of the region; the first opening poisons it."""
        if region.access is access or region.first == region.last:
            return
        if region.is_fresh and access is not Access.NONE:
            self._protect(region.first, region.last, Access.WRITE)
            region.access, region.is_fresh = Access.WRITE, False
            self.poison(region)
        if region.access is not access:
            self._protect(region.first, region.last, access)
            region.access = access

    def poison(self, region: Region) -> None:
        """Overwrite the region and the rest of its pages with poison; it must be open for writing."""
        self._bytes[region.first : region.last].view(np.uint16).fill(self._poison_pair)

    def content(self, region: Region) -> Bytes:
        """A view of the region's bytes; accesses need the region to be open."""
        start = region.address - self.address
        return self._bytes[start : start + region.size]

    def fill(self, region: Region, array: NDArray[Any]) -> None:
        """Copy a contiguous array into the region, and close it."""
        self.open(region, Access.WRITE)
        self.content(region)[:] = array.reshape(-1).view(np.uint8)
        self.open(region, Access.NONE)

    def forget(self, region: Region) -> None:
        """Discard the contents of the region and close it; the next opening poisons it again."""
        if region.is_fresh:
            return
        self._mapping.madvise(mmap.MADV_DONTNEED, region.first, region.last - region.first)
        self.open(region, Access.NONE)
        region.is_fresh = True

    def damage(self, region: Region) -> int | None:
        """The offset, from the start of the region, of a changed byte around it; None without one. It must be open."""
        begin = region.address - self.address
        end = begin + region.size
        for first, last, nearest in ((region.first, begin, -1), (end, region.last, 0)):
            expected = self._poison[first % PAGE : first % PAGE + last - first]
            if self._mapping[first:last] != expected:
                wrong = np.flatnonzero(self._bytes[first:last] != np.frombuffer(expected, np.uint8))
                return first + int(wrong[nearest]) - begin
        return None

    def _protect(self, first: int, last: int, access: Access) -> None:
        if self._libc.mprotect(ctypes.c_void_p(self.address + first), ctypes.c_size_t(last - first), access.value):
            raise OSError(ctypes.get_errno(), f"mprotect of {last - first} bytes to {access}")
