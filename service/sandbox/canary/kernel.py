"""Attempts at parts of the kernel that a compile has no use for, all open to any user."""

from __future__ import annotations

import ctypes
import os
from typing import Final

from .native import call
from .victim import Attempts, Victim

# <linux/userfaultfd.h>, <linux/keyctl.h>, <linux/io_uring.h>, <linux/sched.h>
_UFFD_USER_MODE_ONLY: Final = 1
_KEYCTL_GET_KEYRING_ID, _KEY_SPEC_SESSION_KEYRING = 0, -3
_IO_URING_PARAMS_BYTES: Final = 120
_CLONE_NEWUSER: Final = 0x10000000


def _set_up_ring(_victim: Victim) -> None:
    os.close(call("io_uring_setup", 1, ctypes.create_string_buffer(_IO_URING_PARAMS_BYTES)))


KERNEL: Final[Attempts] = {
    "have memory that no limit counts": lambda _: os.close(os.memfd_create("canary")),
    "handle its own page faults": lambda _: os.close(call("userfaultfd", os.O_CLOEXEC | _UFFD_USER_MODE_ONLY)),
    "have a ring for system calls": _set_up_ring,
    "use a keyring": lambda _: call("keyctl", _KEYCTL_GET_KEYRING_ID, _KEY_SPEC_SESSION_KEYRING, 1),
    "watch files": lambda _: os.close(call("inotify_init1", 0)),
}

NAMESPACES: Final[Attempts] = {"leave its namespaces": lambda _: call("unshare", _CLONE_NEWUSER)}
"""The last attempt to make: one that succeeds makes the process somebody else."""
