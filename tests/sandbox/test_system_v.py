"""A job reaches no message queue and no semaphore of another process, though it may know their numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from service.sandbox import syscalls
from service.sandbox.frames import Message
from service.sandbox.levels import Level, Wall
from service.sandbox.sandbox import Sandbox

from .boxes import LIMITS, WALLS
from .shared import Boxes
from .warm_ups import IPC_NOWAIT, QueuedText

pytestmark = [
    pytest.mark.xdist_group("boxes"),
    pytest.mark.skipif(not syscalls.is_supported(), reason="this kernel filters no system calls"),
]
IPC_PRIVATE, IPC_CREAT, IPC_RMID, GETVAL, SETVAL = 0, 0o1000, 0, 12, 16
LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def queue() -> Iterator[int]:
    number = LIBC.msgget(IPC_PRIVATE, 0o600 | IPC_CREAT)
    if number < 0:
        pytest.skip("this kernel has no message queues")
    yield number
    LIBC.msgctl(number, IPC_RMID, None)


@pytest.fixture
def semaphore() -> Iterator[int]:
    number = LIBC.semget(IPC_PRIVATE, 1, 0o600 | IPC_CREAT)
    if number < 0:
        pytest.skip("this kernel has no semaphores")
    yield number
    LIBC.semctl(number, 0, IPC_RMID)


@pytest.mark.parametrize(("wall", "level"), WALLS)
def test_queues_and_semaphores_are_out_of_reach(
    boxes: Boxes, queue: int, semaphore: int, wall: Wall, level: Level
) -> None:
    secret = QueuedText(1, b"for another process")
    assert LIBC.msgsnd(queue, ctypes.byref(secret), 32, IPC_NOWAIT) == 0
    assert LIBC.semctl(semaphore, 0, SETVAL, 1) == 0

    async def reaches(sandbox: Sandbox) -> None:
        assert Level((await sandbox.start()).level) is level
        header = {"queue": queue, "semaphore": semaphore}
        outcomes = (await sandbox.run("use_system_v", Message(header), LIMITS)).header
        assert outcomes == dict.fromkeys(("msgrcv", "msgsnd", "semop", "semtimedop"), "EPERM")

    boxes.run(reaches, wall=wall, warm_ups=["tests.sandbox.warm_ups:take_over"])
    heard = QueuedText()
    assert LIBC.msgrcv(queue, ctypes.byref(heard), 32, 0, IPC_NOWAIT) == 32
    assert heard.text == secret.text
    assert LIBC.semctl(semaphore, 0, GETVAL) == 1
