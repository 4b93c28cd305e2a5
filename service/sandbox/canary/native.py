"""System calls that Python has no function for."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

from service.sandbox import syscalls

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
