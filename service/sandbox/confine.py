"""Rights and resources that a forked process gives up before it reads untrusted input."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Final

from .control import Limits

MIB: Final = 1 << 20
OPEN_FILES: Final = 64
STACK_BYTES: Final = 64 * MIB
CPU_GRACE_S: Final = 2
TASKS: Final = 0
"""Processes and threads that a task may start. The kernel would compare any other number with all tasks of the user."""
NICENESS: Final = 5
"""Nice value of a compile: a quarter of a processor shared with a process at 0, all of an idle one (nice(2))."""

# <linux/prctl.h>
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_PR_SET_NO_NEW_PRIVS: Final = 38

# <linux/capability.h>: version 3, and two structs of three words
_CAPABILITY_VERSION: Final = 0x20080522
_CAPABILITY_BYTES: Final = 24

LIBC: Final = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` ends; end now when it already has."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def limit_resources(limits: Limits, baseline_bytes: int) -> None:
    """Set every resource limit; `baseline_bytes` is the address space in use before the task."""
    cpu_s = ceil(limits.deadline_s) * (os.cpu_count() or 1) + CPU_GRACE_S
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits.file_mib * MIB),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_NPROC, TASKS),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_STACK, STACK_BYTES),
        (resource.RLIMIT_AS, baseline_bytes + limits.memory_mib * MIB),
    ):
        _, hard = resource.getrlimit(kind)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


def renounce_privileges() -> None:
    """Drop every capability, root's included, and set no_new_privs so that no executed program regains one."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    header, none = struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(_CAPABILITY_BYTES)
    checked(LIBC.capset(header, none), "capset")


def call_process(name: str) -> None:
    """Set the name that `ps` shows for this process: up to 15 bytes."""
    LIBC.prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()), 0, 0, 0)


def give_way() -> None:
    """Lower the priority of this long-running process, so that short ones run first; never raise it.

    A session leader lowers its session's priority too: with autogroups, the kernel divides the processors among
    sessions first (sched(7)).
    """
    with suppress(OSError):  # no autogroups, or changed too often without privileges
        niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
        if os.getsid(0) == os.getpid():
            Path("/proc/self/autogroup").write_text(str(niceness))


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def memory_bytes() -> tuple[int, int]:
    """The address space of this process, and its resident memory that no file backs, which a fork inherits at once."""
    mapped, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())  # pages: see proc(5)
    return mapped * resource.getpagesize(), (resident - shared) * resource.getpagesize()


def prctl(option: int, argument: int) -> int:
    """prctl(2) with one argument; OSError when the kernel refuses."""
    return checked(LIBC.prctl(option, ctypes.c_ulong(argument), 0, 0, 0), f"prctl({option})")


def checked(result: int, call: str) -> int:
    """`result` of a `call` of the C library; OSError by its errno when it is below 0."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), call)
    return result
