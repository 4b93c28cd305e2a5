"""The memory that a job is going to write, made its process's own before the job begins.

A forked process shares the memory of its parent until one of the two writes: the first write to a page is a fault, and
copies it. What a job writes to, another that does the same wrote to as well.
"""

from __future__ import annotations

import ctypes
import os
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from mmap import PAGESIZE
from pathlib import Path
from typing import Final, TypeAlias

_MADV_POPULATE_WRITE: Final = 23
"""linux/mman.h, from Linux 5.14 on."""
_OWN: Final = 1 << 63 | 1 << 56
"""Of an entry of /proc/PID/pagemap: in memory, and in no other process's (Documentation/admin-guide/mm/pagemap.rst)."""
_ENTRY_BYTES: Final = 8
_RUN: Final = struct.Struct("QQ")
_WRITABLE: Final = "rw-p"

Run: TypeAlias = tuple[int, int]
"""An address, and a number of bytes."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def written_by(work: Callable[[], object]) -> tuple[Run, ...]:
    """The memory of this process that a fork of it writes to when it does `work`.

    Nothing where the kernel does not tell, or the fork does not come to its end.
    """
    areas = tuple(_writable())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            work()
            with open(writer, "wb") as out:
                out.writelines(_RUN.pack(*run) for run in _own(areas))
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as told:
        runs = told.read()
    os.waitpid(child, 0)
    return tuple(_RUN.iter_unpack(runs[: len(runs) // _RUN.size * _RUN.size]))


def make_own(runs: Iterable[Run]) -> None:
    """Copy what is shared of this memory. A kernel that does not do so ahead does it when the memory is written."""
    for address, length in runs:
        if _libc.madvise(address, length, _MADV_POPULATE_WRITE):
            return


def _writable() -> Iterator[Run]:
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, permissions, *_ = line.split(maxsplit=2)
        if permissions == _WRITABLE:
            begin, end = (int(each, 16) for each in span.split("-"))
            yield begin, end - begin


def _own(areas: Iterable[Run]) -> Iterator[Run]:
    """What no other process has of these."""
    with open("/proc/self/pagemap", "rb", buffering=0) as pages:
        for address, length in areas:
            first, count = address // PAGESIZE, length // PAGESIZE
            entries = array("Q", os.pread(pages.fileno(), count * _ENTRY_BYTES, first * _ENTRY_BYTES))
            begin = first
            for is_own, run in groupby(entry & _OWN == _OWN for entry in entries):
                end = begin + sum(1 for _ in run)
                if is_own:
                    yield begin * PAGESIZE, (end - begin) * PAGESIZE
                begin = end
