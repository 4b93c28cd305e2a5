"""The memory that a job is going to write, made its process's own before the job begins.

A forked process shares the memory of its parent until one of the two writes: the first write to a page is a fault, and
copies it. What a job writes to, another that does the same wrote to as well.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import struct
import time
import traceback
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from mmap import PAGESIZE
from pathlib import Path
from typing import Final, TypeAlias

from . import confine

_MADV_POPULATE_WRITE: Final = 23
"""linux/mman.h, from Linux 5.14 on."""
_OWN: Final = 1 << 63 | 1 << 56
"""Of an entry of /proc/PID/pagemap: in memory, and in no other process's (Documentation/admin-guide/mm/pagemap.rst)."""
_ENTRY_BYTES: Final = 8
_RUN: Final = struct.Struct("QQ")
_COUNT: Final = struct.Struct("Q")
_READ_BYTES: Final = 64 << 10
PATIENCE_S: Final = 10.0
_WRITABLE: Final = "rw-p"

Run: TypeAlias = tuple[int, int]
"""An address, and a number of bytes."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def written_by(work: Callable[[], object]) -> tuple[Run, ...]:
    """The memory of this process that a fork of it writes to when it does `work`.

    Nothing where the kernel does not tell, or there is no fork that comes to its end within PATIENCE_S.
    """
    areas = tuple(_writable())
    parent = os.getpid()
    try:
        reader, writer = os.pipe()
        child = os.fork()
    except OSError:
        return ()
    if child == 0:
        try:
            confine.die_with_parent(parent)
            os.close(reader)
            work()
            told = b"".join(_RUN.pack(*run) for run in _own(areas))
            with open(writer, "wb", buffering=0) as out:
                out.write(_COUNT.pack(len(told)) + told)
        except BaseException:  # it is this process's last, and the service starts without it
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    try:
        return tuple(_RUN.iter_unpack(_told(reader)))
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def make_own(runs: Iterable[Run]) -> None:
    """Copy what is shared of this memory. A kernel that does not do so ahead does it when the memory is written."""
    for address, length in runs:
        if _libc.madvise(address, length, _MADV_POPULATE_WRITE) and ctypes.get_errno() == errno.EINVAL:
            return


def _told(reader: int) -> bytes:
    """What the fork says, empty unless it says all of it in time."""
    until, said = time.monotonic() + PATIENCE_S, b""
    while len(said) < _COUNT.size or len(said) < _COUNT.size + _COUNT.unpack_from(said)[0]:
        ready, _, _ = select.select([reader], [], [], max(until - time.monotonic(), 0.0))
        more = os.read(reader, _READ_BYTES) if ready else b""
        if not more:
            return b""
        said += more
    return said[_COUNT.size :]


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
