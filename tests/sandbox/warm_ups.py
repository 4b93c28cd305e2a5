"""Jobs of a process that has been taken over, as warm-ups for fork servers of the tests."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from service.sandbox.child import Outlet, Task
from service.sandbox.frames import Message
from service.sandbox.tasks import TASKS


class QueuedText(ctypes.Structure):
    """struct msgbuf"""

    _fields_ = [("kind", ctypes.c_long), ("text", ctypes.c_char * 32)]


class SemaphoreStep(ctypes.Structure):
    """struct sembuf"""

    _fields_ = [("number", ctypes.c_ushort), ("change", ctypes.c_short), ("flags", ctypes.c_short)]


IPC_NOWAIT = 0o4000


def take_over() -> None:
    """Have the jobs below, and compiles that end by the signal that their target's CPU names."""
    jobs = cast(dict[str, Task], TASKS)
    jobs |= {"signal": _signal, "speak": _speak, "use_system_v": _use_system_v, "multiply": _multiply}
    jobs |= {"stay": _stay, "reach": reach}
    jobs["compile"] = lambda request, outlet: _end_by(int(request.header["target"]["cpu"]))


FAMILIES = {"tcp": socket.AF_INET, "udp": socket.AF_INET, "unix": socket.AF_UNIX}


def reach(request: Message, outlet: Outlet) -> Message:
    """Which of the `files` were read, and which of the `addresses` (a kind and a place) were sent to."""
    reached: list[str] = []
    for file in request.header["files"]:
        with suppress(OSError):
            Path(file).read_bytes()
            reached.append(file)
    for kind, place in request.header["addresses"]:
        with suppress(OSError), socket.socket(FAMILIES[kind], _SORTS.get(kind, socket.SOCK_STREAM)) as channel:
            channel.settimeout(1.0)
            channel.connect(place if isinstance(place, str) else tuple(place))
            channel.send(b"out")
            reached.append(kind)
    return Message({"reached": reached})


_SORTS = {"udp": socket.SOCK_DGRAM}


def _signal(request: Message, outlet: Outlet) -> Message:
    return _end_by(request.header["signal"])


def _end_by(number: int) -> Message:
    os.kill(os.getpid(), number)
    raise AssertionError(f"signal {number} did not end the process")


def _stay(request: Message, outlet: Outlet) -> Message:
    """Say the stage `stay`, and end a moment later."""
    outlet.stage("stay")
    time.sleep(0.3)
    return Message(request.header)


def _speak(request: Message, outlet: Outlet) -> Message:
    """Say the part `frames`, and live on."""
    outlet.raw(request.parts["frames"])
    signal.pause()
    return Message()


def _use_system_v(request: Message, outlet: Outlet) -> Message:
    """What each call on the `queue` and the `semaphore` of another process comes to."""
    queue, semaphore = request.header["queue"], request.header["semaphore"]
    libc = ctypes.CDLL(None, use_errno=True)
    text, step = QueuedText(1, b"from a job"), SemaphoreStep(0, -1, IPC_NOWAIT)
    calls: dict[str, tuple[Any, ...]] = {
        "msgrcv": (queue, ctypes.byref(text), 32, 0, IPC_NOWAIT),
        "msgsnd": (queue, ctypes.byref(text), 32, IPC_NOWAIT),
        "semop": (semaphore, ctypes.byref(step), 1),
        "semtimedop": (semaphore, ctypes.byref(step), 1, None),
    }
    return Message(
        {
            name: errno.errorcode[ctypes.get_errno()] if getattr(libc, name)(*arguments) < 0 else "done"
            for name, arguments in calls.items()
        }
    )


def _multiply(request: Message, outlet: Outlet) -> Message:
    """What starting a thread and a process comes to, and the limits on their number."""

    def fork() -> None:
        if os.fork() == 0:
            os._exit(0)

    def start() -> None:
        threading.Thread(target=int).start()

    outcomes: dict[str, Any] = {"limits": resource.getrlimit(resource.RLIMIT_NPROC)}
    for name, attempt in (("fork", fork), ("thread", start)):
        try:
            attempt()
            outcomes[name] = "done"
        except (OSError, RuntimeError):
            outcomes[name] = "refused"
    return Message(outcomes)
