"""The canary: a process that attempts operations which confinement must refuse, and others which it must allow."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from . import syscalls
from .confine import LIBC, checked

DESCRIPTORS: Final = 200
_NONE: Final = -1
_REFUSED: Final = (errno.EPERM, errno.ENOSYS)
# <linux/userfaultfd.h>, <linux/keyctl.h>, <linux/io_uring.h>, <linux/sched.h>
_UFFD_USER_MODE_ONLY: Final = 1
_KEYCTL_GET_KEYRING_ID, _KEY_SPEC_SESSION_KEYRING = 0, -3
_IO_URING_PARAMS: Final = ctypes.create_string_buffer(120)
_CLONE_NEWUSER: Final = 0x10000000
FORKS: Final = 1000
_PTRACE_SEIZE: Final = 0x4206
"""Of <linux/ptrace.h>: unlike an attach, it does not stop the other process."""
_PR_SET_PDEATHSIG: Final = 1
_F_SETOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Victim:
    """A file outside the canary's directory, a process of the same user, and sizes above the limits in bytes."""

    planted: Path
    pid: int
    file_bytes: int
    memory_bytes: int


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


@dataclass(frozen=True, slots=True)
class Findings:
    """Attempts that succeeded (`escaped`), attempts that were refused, and needs that failed (`hindered`)."""

    escaped: tuple[str, ...]
    refused: tuple[str, ...]
    hindered: tuple[str, ...]


def make_attempts(victim: Victim) -> Findings:
    """Make every attempt, in a process that ends soon after."""
    # Exceeding the file limit must raise an error here, not kill the process.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hindered = tuple(name for name, need in NEEDS.items() if not _succeeds(need, victim))
    outcomes = {name: _succeeds(attempt, victim) for name, attempt in ATTEMPTS.items()}
    escaped = tuple(name for name, succeeded in outcomes.items() if succeeded)
    return Findings(escaped, tuple(name for name in outcomes if name not in escaped), hindered)


def _succeeds(attempt: Attempt, victim: Victim) -> bool:
    try:
        attempt(victim)
    except OSError:
        return False
    return True


def _create(victim: Victim) -> None:
    made = victim.planted.with_name("made")
    made.write_bytes(b"made")
    made.unlink()


def _rename(victim: Victim) -> None:
    moved = victim.planted.with_name("moved")
    victim.planted.rename(moved)
    moved.rename(victim.planted)


def _link(victim: Victim) -> None:
    os.link(victim.planted, "linked")
    Path("linked").unlink()


def _share_memory(_victim: Victim) -> None:
    shared = Path("/dev/shm", f"kiln-canary-{os.getpid()}")
    shared.write_bytes(b"shared")
    shared.unlink()


def _grow_a_file(victim: Victim) -> None:
    large = Path("large")
    try:
        with large.open("wb") as file:
            file.truncate(victim.file_bytes)
    finally:
        large.unlink()


def _open_files(_victim: Victim) -> None:
    held: list[int] = []
    try:
        for _ in range(DESCRIPTORS):
            held.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for descriptor in held:
            os.close(descriptor)


def _keep_a_file(_victim: Victim) -> None:
    kept = Path("kept")
    kept.write_bytes(b"kept")
    kept.replace("moved")
    Path("moved").unlink()


def _use(name: str, *arguments: int) -> None:
    """Make a call on an object that does not exist. OSError only if the call is refused, not for the missing object."""
    try:
        call(name, _NONE, *arguments)
    except OSError as error:
        if error.errno in _REFUSED:
            raise


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


NEEDS: Final[Attempts] = {
    "read its own program": lambda _: Path(__file__).read_bytes(),
    "list Python's library": lambda _: os.listdir(Path(os.__file__).parent),
    "load a library": lambda _: ctypes.CDLL("libm.so.6"),
    "keep a file of its own": _keep_a_file,
}
"""What a task has to be able to do."""

ATTEMPTS: Final[Attempts] = {
    # Files
    "read a file that is not its own": lambda victim: victim.planted.read_bytes(),
    "list a directory that is not its own": lambda victim: os.listdir(victim.planted.parent),
    "write a file that is not its own": lambda victim: victim.planted.open("r+b").close(),
    "truncate a file that is not its own": lambda victim: os.truncate(victim.planted, 0),
    "truncate a file by opening it": lambda victim: os.close(os.open(victim.planted, os.O_RDONLY | os.O_TRUNC)),
    "make a file outside its directory": _create,
    "rename a file that is not its own": _rename,
    "link a file that is not its own": _link,
    "make a directory": lambda _: os.mkdir("made"),
    "change the mode of a file": lambda victim: os.chmod(victim.planted, 0o600),
    "change the times of a file": lambda victim: os.utime(victim.planted),
    "read the environment of another process": lambda victim: Path(f"/proc/{victim.pid}/environ").read_bytes(),
    "open the memory of another process": lambda victim: Path(f"/proc/{victim.pid}/mem").open("rb").close(),
    "share memory by name": _share_memory,
    # Processes
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
    # The network
    "have a TCP socket": lambda _: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close(),
    "have a UDP socket": lambda _: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
    "have a Unix socket": lambda _: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close(),
    "have a netlink socket": lambda _: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
    # Parts of the kernel
    "have memory that no limit counts": lambda _: os.close(os.memfd_create("canary")),
    "handle its own page faults": lambda _: os.close(call("userfaultfd", os.O_CLOEXEC | _UFFD_USER_MODE_ONLY)),
    "have a ring for system calls": lambda _: os.close(call("io_uring_setup", 1, _IO_URING_PARAMS)),
    "use a keyring": lambda _: call("keyctl", _KEYCTL_GET_KEYRING_ID, _KEY_SPEC_SESSION_KEYRING, 1),
    "watch files": lambda _: os.close(call("inotify_init1", 0)),
    # Objects that processes share by a number
    "send to a message queue": lambda _: _use("msgsnd", 0, 0, 0),
    "receive from a message queue": lambda _: _use("msgrcv", 0, 0, 0, 0),
    "use a semaphore": lambda _: _use("semop", 0, 0),
    "wait for a semaphore": lambda _: _use("semtimedop", 0, 0, 0),
    "attach shared memory": lambda _: _use("shmat", 0, 0),
    "receive from a POSIX message queue": lambda _: _use("mq_timedreceive", 0, 0, 0, 0),
    # Limits
    "write a file above its limit": _grow_a_file,
    "have memory above its limit": lambda victim: mmap.mmap(-1, victim.memory_bytes).close(),
    f"open {DESCRIPTORS} files": _open_files,
    # Last, because success moves the process into another user namespace.
    "leave its namespaces": lambda _: call("unshare", _CLONE_NEWUSER),
}
"""What confinement has to refuse."""
