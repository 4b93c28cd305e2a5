"""Landlock: restrict this process to the listed files, and forbid it TCP.

Raw system calls, since the C library has no names for them. Numbers and bits are those of <linux/landlock.h>; each ABI
adds rights: 2 renaming between directories, 3 truncation, 4 TCP, 5 ioctl on devices, 6 signals and abstract Unix
sockets.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .confine import LIBC, checked

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_CREATE_RULESET_VERSION: Final = 1
_RULE_PATH_BENEATH: Final = 1

_EXECUTE: Final = 1 << 0
_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_REMOVE_FILE: Final = 1 << 5
_MAKE_REG: Final = 1 << 8
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14

_READ: Final = _READ_FILE | _READ_DIR
_WRITE: Final = _READ | _WRITE_FILE | _REMOVE_FILE | _MAKE_REG | _REFER | _TRUNCATE
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
"""The rights that a rule for a non-directory may name."""

_ALL_FILE_RIGHTS: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_ALL_TCP_RIGHTS: Final = (1 << 2) - 1
_ALL_SCOPES: Final = (1 << 2) - 1
_NEWEST: Final = 6

_RULESET: Final = struct.Struct("=QQQ")
"""struct landlock_ruleset_attr: handled_access_fs, handled_access_net from ABI 4 on, scoped from ABI 6 on."""
_PATH_BENEATH: Final = struct.Struct("=Qi")
"""struct landlock_path_beneath_attr, which is packed: allowed_access, parent_fd."""


@dataclass(frozen=True, slots=True)
class Support:
    """The newest ABI that both the kernel and this module know, 0 when there is none; then `reason` says why."""

    abi: int
    reason: str = ""


def support() -> Support:
    """Query the kernel's Landlock ABI."""
    try:
        return Support(min(_call(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION), _NEWEST))
    except OSError as error:
        why = {errno.ENOSYS: "the kernel has no Landlock", errno.EOPNOTSUPP: "Landlock is not enabled at boot"}
        return Support(0, why.get(error.errno or 0, f"the kernel refuses Landlock: {error.strerror}"))


def restrict(abi: int, readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """Confine this process for the rest of its life, with the rights that `abi` knows; needs no_new_privs.

    It may read and map files in or below `readable`, and write, create and remove those in or below `writable`. Missing
    paths are skipped. OSError when the kernel refuses.
    """
    handled = _ALL_FILE_RIGHTS[max(known for known in _ALL_FILE_RIGHTS if known <= abi)]
    tcp = _ALL_TCP_RIGHTS if abi >= 4 else 0
    scopes = _ALL_SCOPES if abi >= 6 else 0
    size = 8 if abi < 4 else 16 if abi < 6 else _RULESET.size
    ruleset = _call(_CREATE_RULESET, _RULESET.pack(handled, tcp, scopes), size, 0)
    try:
        for paths, rights in ((readable, _READ), (writable, _WRITE)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # an unreachable path needs no rule
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        _call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, _PATH_BENEATH.pack(rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: int | bytes | None) -> int:
    converted = [ctypes.c_long(each) if isinstance(each, int) else ctypes.c_char_p(each) for each in arguments]
    return checked(LIBC.syscall(ctypes.c_long(number), *converted), f"system call {number}")
