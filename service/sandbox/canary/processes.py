"""Attempts at starting processes and threads, and on processes that are not the canary's own."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import threading
import time
from typing import Final

from service.sandbox.confine import LIBC

from .victim import Attempts, Victim, call

FORKS: Final = 1000

_PTRACE_SEIZE: Final = 0x4206
"""Of <linux/ptrace.h>: unlike an attach, it does not stop the other process."""
_PR_SET_PDEATHSIG: Final = 1
_F_SETOWN: Final = 8


def _fork(_victim: Victim) -> None:
    refusals = 0
    for _ in range(FORKS):
        try:
            child = os.fork()
        except OSError:
            refusals += 1
            continue
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    if refusals == FORKS:
        raise PermissionError


def _start_thread(_victim: Victim) -> None:
    thread = threading.Thread(target=lambda: None)
    try:
        thread.start()
    except RuntimeError:  # what Python makes of EPERM here
        raise PermissionError from None
    thread.join()


def _execute(_victim: Victim) -> None:
    """Run a program that does not exist: ENOENT means that running an existing one is allowed."""
    nothing = (ctypes.c_char_p * 1)(None)
    LIBC.execve(b"/nonexistent", nothing, nothing)
    if ctypes.get_errno() != errno.ENOENT:
        raise PermissionError


def _read_memory(victim: Victim) -> None:
    """Read one byte at an address that is also mapped in the fork server, because this process was forked from it."""
    mine = ctypes.create_string_buffer(1)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(mine), 1)
    remote = (ctypes.c_void_p * 2)(ctypes.addressof(LIBC.syscall), 1)
    call("process_vm_readv", victim.pid, local, 1, remote, 1, 0)


def _raise_limit(_victim: Victim) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard + 1))
    except ValueError:  # what Python makes of EPERM here
        raise PermissionError from None


def _set_timer(_victim: Victim) -> None:
    """Create a timer that sends a signal when it expires."""
    call("timer_create", time.CLOCK_MONOTONIC, None, ctypes.byref(ctypes.c_int()))


PROCESSES: Final[Attempts] = {
    f"fork once in {FORKS} times": _fork,
    "start a thread": _start_thread,
    "run a program": _execute,
    "start a program": lambda _: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
    "signal another process": lambda victim: os.kill(victim.pid, 0),
    "signal its own group": lambda _: os.kill(0, 0),
    "hold another process": lambda victim: os.close(call("pidfd_open", victim.pid, 0)),
    "have another process signalled": lambda victim: fcntl.fcntl(0, _F_SETOWN, victim.pid),
    "have itself signalled later": _set_timer,
    "read the memory of another process": _read_memory,
    "see the limits of another process": lambda victim: resource.prlimit(victim.pid, resource.RLIMIT_NOFILE),
    "raise a limit of its own": _raise_limit,
    "outlive its parent": lambda _: call("prctl", _PR_SET_PDEATHSIG, 0, 0, 0, 0),
    "trace another process": lambda victim: call("ptrace", _PTRACE_SEIZE, victim.pid, 0, 0),
}
