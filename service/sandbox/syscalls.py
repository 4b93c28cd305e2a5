"""A seccomp filter: a task starts no process, no thread and no program, and reaches no other process and no network.

It works for every user, root included, where RLIMIT_NPROC does not.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from .confine import LIBC, checked, prctl

_Numbers: TypeAlias = Mapping[str, tuple[int, int | None]]
_TABLE: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("syscall_numbers.json").read_bytes())
"""Numbers of system calls: of x86-64, and of aarch64 (null where it has no such call), from <asm/unistd.h>."""
REFUSED: Final[_Numbers] = {name: numbers for calls in _TABLE["refused"].values() for name, numbers in calls.items()}
"""Calls that are refused with any arguments; the table has them by the reason."""
JUDGED: Final[_Numbers] = _TABLE["judged"]
"""Calls that are refused depending on their arguments."""
FIRST_UNKNOWN: Final = 463
"""Calls from this number on, which both architectures share, are newer than the table."""

# <linux/bpf_common.h>, <linux/filter.h>
_LOAD_WORD: Final = 0x20
_AND: Final = 0x54
_JUMP_EQUAL: Final = 0x15
_JUMP_AT_LEAST: Final = 0x35
_JUMP_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06
_INSTRUCTION: Final = struct.Struct("HBBI")

# <linux/seccomp.h>: struct seccomp_data is {int nr; u32 arch; u64 instruction_pointer; u64 args[6]}
_NUMBER, _AUDIT = 0, 4
_ARGUMENTS: Final = (16, 24, 32)
_ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000
_PR_SET_SECCOMP: Final = 22
_PR_GET_SECCOMP: Final = 21
_MODE_FILTER: Final = 2

_MACHINES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column of a machine in the table, and its AUDIT_ARCH value in <linux/audit.h>."""

_X32_BIT: Final = 0x40000000
_OF_OTHERS: Final = (1, 62)
"""PR_SET_PDEATHSIG, and PR_SCHED_CORE, which keeps other processes off a core."""
_SIGNAL_OWNERS: Final = (8, 10, 15)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX, which make the kernel signal another process for this one."""
_WATCHES: Final = (1024, 1026)
"""F_SETLEASE and F_NOTIFY, which report or delay other processes that open or change a file."""
_SIGNALLING_IOCTLS: Final = (0x8901, 0x8902, 0x5412)
"""FIOSETOWN, SIOCSPGRP and TIOCSTI."""

_Check = tuple[int, int, int, int]
_PASS: Final[_Check] = (_RETURN, 0, 0, _ALLOW)
_REFUSE: Final[_Check] = (_RETURN, 0, 0, _ERRNO | errno.EPERM)


class _Program(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def forbid_processes() -> None:
    """Install the filter, where `is_supported`; needs no_new_privs. A refused call fails with EPERM.

    Calls newer than the filter fail with ENOSYS, so the C library falls back to older ones.
    """
    if not is_supported():
        return
    program = program_for(platform.machine(), os.getpid())
    filled = _Program(len(program) // _INSTRUCTION.size, program)
    result = LIBC.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(filled), 0, 0)
    checked(result, "prctl(PR_SET_SECCOMP)")


@cache
def is_supported() -> bool:
    """Whether this machine's architecture is known here and its kernel filters system calls."""
    if platform.machine() not in _MACHINES:
        return False
    try:
        return prctl(_PR_GET_SECCOMP, 0) >= 0
    except OSError:
        return False


def number(name: str) -> int | None:
    """The number of a call of the table on this machine; None where it has no such call, or is not known."""
    column, _ = _MACHINES.get(platform.machine(), (None, 0))
    return None if column is None else {**REFUSED, **JUDGED}[name][column]


def program_for(machine: str, pid: int) -> bytes:
    """The instructions of the filter for process `pid` on a machine of this kind."""
    column, audit = _MACHINES[machine]
    judged = {name: numbers[column] for name, numbers in JUDGED.items()}
    checks: list[_Check] = [
        (_LOAD_WORD, 0, 0, _AUDIT),
        (_JUMP_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD_WORD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_JUMP_AT_LEAST, 0, 1, FIRST_UNKNOWN),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    # A process may make these calls on itself only.
    for name, allowed in (("kill", (pid,)), ("tgkill", (pid,)), ("prlimit64", (0, pid))):
        checks += _judge(judged[name], 0, [*_when_one_of(allowed, _PASS), _REFUSE])
    for name, argument, refused in (
        ("prctl", 0, _OF_OTHERS),
        ("fcntl", 1, (*_SIGNAL_OWNERS, *_WATCHES)),
        ("ioctl", 1, _SIGNALLING_IOCTLS),
    ):
        checks += _judge(judged[name], argument, [*_when_one_of(refused, _REFUSE), _PASS])
    # Before ABI 3, Landlock checks files opened for writing, but not a read-only open with O_TRUNC.
    truncates_unopened = [
        (_JUMP_ANY_BIT, 1, 0, os.O_TRUNC),
        _PASS,
        (_AND, 0, 0, os.O_ACCMODE),
        *_when_one_of((os.O_WRONLY, os.O_RDWR), _PASS),
        _REFUSE,
    ]
    for name, argument in (("open", 1), ("openat", 2)):
        checks += _judge(judged[name], argument, truncates_unopened)
    for numbers in REFUSED.values():
        if (refused_number := numbers[column]) is not None:
            checks += [(_JUMP_EQUAL, 0, 1, refused_number), _REFUSE]
    return b"".join(_INSTRUCTION.pack(*check) for check in [*checks, _PASS])


def _judge(number: int | None, argument: int, verdict: list[_Check]) -> list[_Check]:
    """Checks of one call on the low 32 bits of one argument; `verdict` must always return."""
    if number is None:
        return []
    return [(_JUMP_EQUAL, 0, len(verdict) + 1, number), (_LOAD_WORD, 0, 0, _ARGUMENTS[argument]), *verdict]


def _when_one_of(values: tuple[int, ...], verdict: _Check) -> list[_Check]:
    return [check for value in values for check in ((_JUMP_EQUAL, 0, 1, value), verdict)]
