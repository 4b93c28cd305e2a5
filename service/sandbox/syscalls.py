"""A seccomp filter: a job may start threads, but no process and no program, signals only itself, and has no network.

It works for every user, root included, where RLIMIT_NPROC does not.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass
from typing import Final

from .confine import prctl

# <linux/bpf_common.h>, <linux/filter.h>
_LOAD_WORD: Final = 0x20
_JUMP_EQUAL: Final = 0x15
_JUMP_AT_LEAST: Final = 0x35
_JUMP_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06
_INSTRUCTION: Final = struct.Struct("HBBI")

# <linux/seccomp.h>: struct seccomp_data is {int nr; u32 arch; u64 instruction_pointer; u64 args[6]}
_NUMBER, _AUDIT, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000
_PR_SET_SECCOMP: Final = 22
_PR_GET_SECCOMP: Final = 21
_MODE_FILTER: Final = 2

# <linux/sched.h>
_CLONE_THREAD: Final = 0x00010000
_X32_BIT: Final = 0x40000000


@dataclass(frozen=True, slots=True)
class _Architecture:
    """Audit number (<linux/audit.h>) and system call numbers (asm/unistd.h)."""

    audit: int
    clone: int
    clone3: int
    signals: tuple[int, ...]
    denied: tuple[int, ...]


_ARCHITECTURES = {
    "x86_64": _Architecture(
        audit=0xC000003E,
        clone=56,
        clone3=435,
        signals=(62, 234),  # kill, tgkill
        # socket connect bind listen, fork vfork execve execveat, tkill rt_sigqueueinfo rt_tgsigqueueinfo
        # pidfd_send_signal, ptrace process_vm_readv process_vm_writev, unshare setns mount, bpf userfaultfd
        # io_uring_setup keyctl
        denied=(41, 42, 49, 50, 57, 58, 59, 322, 200, 129, 297, 424, 101, 310, 311, 272, 308, 165, 321, 323, 425, 250),
    ),
    "aarch64": _Architecture(
        audit=0xC00000B7,
        clone=220,
        clone3=435,
        signals=(129, 131),
        # the same, less fork and vfork, which this architecture does not have
        denied=(198, 203, 200, 201, 221, 281, 130, 138, 240, 424, 117, 270, 271, 97, 268, 40, 280, 282, 425, 219),
    ),
}


class _Program(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def forbid_processes() -> None:
    """Install the filter for the rest of this process; does nothing where `is_supported` is false.

    Needs no_new_privs to be set. A denied call fails with EPERM. clone3 fails with ENOSYS, upon which the C library
    falls back to clone, whose flags a filter can read.
    """
    if not is_supported():
        return
    program = _filter(_ARCHITECTURES[platform.machine()], os.getpid())
    libc = ctypes.CDLL(None, use_errno=True)
    filled = _Program(len(program) // _INSTRUCTION.size, program)
    if libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(filled), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "prctl(PR_SET_SECCOMP)")


def is_supported() -> bool:
    """Whether this machine's architecture is known here and its kernel filters system calls."""
    if platform.machine() not in _ARCHITECTURES:
        return False
    try:
        return prctl(_PR_GET_SECCOMP, 0) >= 0
    except OSError:
        return False


def _filter(architecture: _Architecture, pid: int) -> bytes:
    checks = [
        (_LOAD_WORD, 0, 0, _AUDIT),
        (_JUMP_EQUAL, 1, 0, architecture.audit),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD_WORD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_JUMP_EQUAL, 0, 1, architecture.clone3),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        *_allow_if(architecture.clone, _JUMP_ANY_BIT, _CLONE_THREAD),
    ]
    for number in architecture.signals:
        checks += _allow_if(number, _JUMP_EQUAL, pid)
    for number in architecture.denied:
        checks += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    checks.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(_INSTRUCTION.pack(*check) for check in checks)


def _allow_if(number: int, test: int, operand: int) -> list[tuple[int, int, int, int]]:
    """Allow a call only when its first argument passes the test; goes on with the next check for other calls."""
    return [
        (_JUMP_EQUAL, 0, 4, number),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
        (test, 1, 0, operand),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
