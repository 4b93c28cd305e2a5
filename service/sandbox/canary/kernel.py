"""Attempts on kernel interfaces that a compile does not need: sockets, and IPC objects shared by number."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from typing import Final

from .victim import Attempts, Victim, call

_TIMEOUT_S: Final = 1.0
_FAMILIES: Final = {"tcp": socket.AF_INET, "udp": socket.AF_INET, "unix": socket.AF_UNIX}


def connections(victim: Victim) -> Attempts:
    """Attempts to connect and send to each of the victim's `addresses`."""
    return {
        f"connect by {kind} to {address}": lambda _, kind=kind, address=address: _connect(kind, address)
        for kind, address in victim.addresses
    }


def _connect(kind: str, address: tuple[str, int] | str) -> None:
    sort = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
    with socket.socket(_FAMILIES[kind], sort) as channel:
        channel.settimeout(_TIMEOUT_S)
        channel.connect(address)
        channel.send(b"out")


NETWORK: Final[Attempts] = {
    "have a TCP socket": lambda _: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close(),
    "have a UDP socket": lambda _: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
    "have a Unix socket": lambda _: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close(),
    "have a netlink socket": lambda _: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
}


_NONE: Final = -1
_REFUSED: Final = (errno.EPERM, errno.ENOSYS)


def _use(name: str, *arguments: int) -> None:
    """Make a call on an object that does not exist. OSError only if the call is refused, not for the missing object."""
    try:
        call(name, _NONE, *arguments)
    except OSError as error:
        if error.errno in _REFUSED:
            raise


SHARED: Final[Attempts] = {
    "send to a message queue": lambda _: _use("msgsnd", 0, 0, 0),
    "receive from a message queue": lambda _: _use("msgrcv", 0, 0, 0, 0),
    "use a semaphore": lambda _: _use("semop", 0, 0),
    "wait for a semaphore": lambda _: _use("semtimedop", 0, 0, 0),
    "attach shared memory": lambda _: _use("shmat", 0, 0),
    "receive from a POSIX message queue": lambda _: _use("mq_timedreceive", 0, 0, 0, 0),
}


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
"""Made last: success moves the process into another user namespace."""
