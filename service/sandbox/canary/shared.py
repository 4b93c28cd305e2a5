"""Attempts at what processes share by a number that can be guessed: queues, semaphores and memory."""

from __future__ import annotations

import errno
from typing import Final

from .native import call
from .victim import Attempts

_NONE: Final = -1
_REFUSED: Final = (errno.EPERM, errno.ENOSYS)


def _use(name: str, *arguments: int) -> None:
    """What nobody has: to be told so is to be allowed to use what somebody has."""
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
