"""Warm-ups for fork servers of the tests: jobs of a process that has been taken over, and that do as they are told."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from service.sandbox.child import Outlet, Task
from service.sandbox.frames import Message
from service.sandbox.tasks import TASKS
from tensorkiln.errors import CrashedError, DiagnosticError, RequestError
from tests.service.failures import fail


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
    jobs |= {
        "signal": _signal,
        "speak": _speak,
        "use_system_v": _use_system_v,
        "multiply": lambda *_: Message(multiply()),
    }
    jobs |= {"stay": _stay, "reach": reach}
    jobs["compile"] = lambda request, outlet: _end_by(int(request.header["target"]["cpu"]))


def use_the_pool() -> None:
    """Have compiles that, in a thread of their pool, try to start others and to read files."""
    cast(dict[str, Task], TASKS)["compile"] = lambda request, outlet: (
        _in_pool(outlet).submit(_try_all, request).result()
    )


def _in_pool(outlet: Outlet) -> Executor:
    assert outlet.pool is not None
    return outlet.pool


def _try_all(request: Message) -> Message:
    return Message({**multiply(), **reach(request).header})


FAMILIES = {"tcp": socket.AF_INET, "udp": socket.AF_INET, "unix": socket.AF_UNIX}


def reach(request: Message, _outlet: Outlet | None = None) -> Message:
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


def multiply() -> dict[str, Any]:
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
    return outcomes


HELD_MIB = 96
_held: list[bytes] = []


def refuse() -> None:
    raise DiagnosticError("no such pass")


def leave_a_thread() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def grow() -> None:
    """Hold HELD_MIB of memory that is resident."""
    _held.append(b"x" * (HELD_MIB << 20))


def _refuse(outlet: Outlet) -> None:
    raise RequestError("Refused as told.")


def _refuse_and_claim(outlet: Outlet) -> None:
    words = {"reproducer": "0" * 64, "cached": True, "attempts": 1, "queue_ms": 0.0}
    raise RequestError("Refused as told.", details={**words, "limit": 3})


def _say_it_crashed(outlet: Outlet) -> None:
    raise CrashedError("It crashed.", details={"cached": True})


def _toil(outlet: Outlet) -> None:
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass


def _set_timers(outlet: Outlet) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    far = (ctypes.c_long * 4)(0, 0, 1000, 0)
    made = [
        libc.timer_create(time.CLOCK_MONOTONIC, None, ctypes.byref(ctypes.c_void_p())),
        libc.setitimer(signal.ITIMER_REAL, far, None),
    ]
    return "refused" if made == [-1, -1] and ctypes.get_errno() == errno.EPERM else str(made)


def _answer_and_spin(outlet: Outlet) -> None:
    outlet.done(_mine())
    while True:
        pass


_marks: list[int] = []
DEEDS: dict[str, Callable[[Outlet], object]] = {
    "nothing": lambda outlet: None,
    "linger": lambda outlet: time.sleep(0.1),
    "toil": _toil,
    "refuse": _refuse,
    "refuse_and_claim": _refuse_and_claim,
    "say_it_crashed": _say_it_crashed,
    "leave_a_mark": lambda outlet: _marks.append(len(_marks)) or str(len(_marks)),
    "set_timers": _set_timers,
    "count_rehearsals": lambda outlet: str(import_module("passes.warm_up").graph.cache_info().currsize),
    "answer_and_spin": _answer_and_spin,
}
"""What a job may do to its fork server, and to the jobs after it."""


def do_as_told() -> None:
    """Have the job `ping` do what its header says that it is to `do`, a deed or a failure, and tell its process."""

    def job(request: Message, outlet: Outlet) -> Message:
        what = request.header.get("do")
        if what is None:
            return Message(request.header)
        deed = DEEDS[what](outlet) if what in DEEDS else fail(what, outlet)
        return Message({**_mine().header, **({"deed": deed} if isinstance(deed, str) else {})})

    cast(dict[str, Task], TASKS)["ping"] = job


def _mine() -> Message:
    return Message({"pid": os.getpid()})
