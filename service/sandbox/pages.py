"""The memory that a job is going to write, made its process's own before the job begins.

A forked process shares the memory of its parent until one of the two writes: the first write to a page is a fault, and
copies it. What a job writes to, another that does the same wrote to as well.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import traceback
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from mmap import PAGESIZE
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

from . import confine

_MADV_POPULATE_WRITE: Final = 23
"""linux/mman.h, from Linux 5.14 on."""
_OWN: Final = 1 << 63 | 1 << 56
"""Of an entry of /proc/PID/pagemap: in memory, and in no other process's (Documentation/admin-guide/mm/pagemap.rst)."""
_ENTRY_BYTES: Final = 8
_RUN: Final = struct.Struct("QQ")
_COUNT: Final = struct.Struct("Q")
_READ_BYTES: Final = 64 << 10
_WRITABLE: Final = "rw-p"

Run: TypeAlias = tuple[int, int]
"""An address, and a number of bytes."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Trial:
    """A fork of this process that does `work`, and tells which of the memory that it shares it writes to for that.

    It runs when a processor has nothing else to do. `fileno` is where it can be heard. OSError when the operating
    system makes no process.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        areas = tuple(_writable())
        parent = os.getpid()
        self._said = b""
        self._reader, writer = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._reader)
            os.close(writer)
            raise
        if self._pid == 0:
            _try_out(work, areas, parent, self._reader, writer)
        os.close(writer)

    def fileno(self) -> int:
        """The descriptor that is ready when `hear` has something to hear."""
        return self._reader

    def hear(self) -> bool:
        """Take in some of what it says; False when that is all."""
        more = os.read(self._reader, _READ_BYTES)
        self._said += more
        return bool(more) and not self._is_whole

    def end(self) -> tuple[Run, ...]:
        """End it; the memory, nothing where the kernel does not tell or it did not come to its end."""
        os.close(self._reader)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        return tuple(_RUN.iter_unpack(self._said[_COUNT.size :])) if self._is_whole else ()

    @property
    def _is_whole(self) -> bool:
        return len(self._said) >= _COUNT.size and len(self._said) - _COUNT.size >= _COUNT.unpack_from(self._said)[0]


def _try_out(work: Callable[[], object], areas: Iterable[Run], parent: int, reader: int, writer: int) -> NoReturn:
    try:
        confine.die_with_parent(parent)
        os.close(reader)
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        work()
        told = b"".join(_RUN.pack(*run) for run in _own(areas))
        with open(writer, "wb", buffering=0) as out:
            out.write(_COUNT.pack(len(told)) + told)
    except BaseException:  # it is this process's last, and the service starts without it
        traceback.print_exc()
    finally:
        os._exit(0)


def make_own(runs: Iterable[Run]) -> None:
    """Copy what is shared of this memory. A kernel that does not do so ahead does it when the memory is written."""
    for address, length in runs:
        if _libc.madvise(address, length, _MADV_POPULATE_WRITE) and ctypes.get_errno() == errno.EINVAL:
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
