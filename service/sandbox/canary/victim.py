"""What a canary goes for, and system calls that Python has no function for."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from service.sandbox import syscalls


@dataclass(frozen=True, slots=True)
class Victim:
    """`planted` is a file outside the canary's directory that its user may write; `pid` is a process of that user.

    It tries for a file of `file_bytes` and for memory of `memory_bytes`. `files` are more files to read, and
    `addresses` places to connect to: `tcp` or `udp` with host and port, `unix` with a path.
    """

    planted: Path
    pid: int
    file_bytes: int
    memory_bytes: int
    files: tuple[Path, ...] = ()
    addresses: tuple[tuple[str, tuple[str, int] | str], ...] = ()


Attempt = Callable[[Victim], object]
"""Raises OSError when it is refused."""

Attempts = Mapping[str, Attempt]
"""By what a process can do that succeeds with one."""


LIBC: Final = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long


def call(name: str, *arguments: object) -> int:
    """What the system call returns; OSError when it fails, or when this machine has no such call."""
    number = syscalls.number(name)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    converted = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = LIBC.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result
