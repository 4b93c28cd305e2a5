"""The targets of a canary, and a wrapper for system calls that Python has no function for."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from service.sandbox import syscalls
from service.sandbox.confine import LIBC, checked


@dataclass(frozen=True, slots=True)
class Victim:
    """`planted` is a file outside the canary's directory that its user may write; `pid` is a process of that user.

    The canary tries to write a file of `file_bytes` and to map `memory_bytes`. `files` are more files to read, and
    `addresses` to connect to: `tcp` or `udp` with host and port, `unix` with a path.
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
"""Attempts, keyed by what a process can do if one succeeds."""


def call(name: str, *arguments: object) -> int:
    """Make a system call and return its result; OSError when it fails, or when this machine has no such call."""
    number = syscalls.number(name)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    converted = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return checked(LIBC.syscall(ctypes.c_long(number), *converted), name)
