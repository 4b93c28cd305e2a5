"""The forked process: confine it, wait for a task, run it, answer, end.

It never returns to the fork server.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import socket
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from tensorkiln.errors import TensorkilnError

from . import confine, control, frames
from .cgroups import Cgroup
from .confinement import Confinement
from .control import Fork
from .frames import Message
from .levels import Level

EXIT_OUT_OF_MEMORY: Final = 97
"""The status of a task whose allocation failed while it was in the middle of a frame."""
EXIT_DEFECT: Final = 70
"""The status of a task that raised an exception which is no TensorkilnError."""

_ASSIGNMENTS: Final = 3
# A process ends soon and its memory with it; what a warm-up has left is frozen and looked at no more.
_COLLECT_EVERY: Final = (50_000, 20, 100)
_UNCOLLECTED: Final = frozenset({"answer", "prepare", "render", "split", "translate", "validate"})
"""Tasks that read graphs and programs, whose objects have no cycles: to look for some takes a tenth of their time, and
a third of a translation's.
"""
RESERVE: Final = "kiln reserve"
"""What a process without a task is called; one with a task is called `kiln ` and the kind of it."""
_OUT_OF_MEMORY: Final = frames.encode(frames.OUT_OF_MEMORY)


class Outlet:
    """Where a task puts what it has to say. A stage is told at once, so that a crash can be blamed on it.

    `level` is how strongly the task is confined.
    """

    def __init__(self, channel: socket.socket, level: Level = Level.PROCESS) -> None:
        self._channel = channel
        self.level = level
        self._inside_frame = False

    def stage(self, name: str) -> None:
        """The task begins the stage `name`."""
        self._send(frames.encode(frames.STAGE, name.encode()))

    def part(self, name: str, content: bytes) -> None:
        """Bytes that belong to the answer."""
        self._send(*frames.encode_part(name, content))

    def ask(self, question: Message) -> Message:
        """What the service says to a question; a task has one at most."""
        self._send(*frames.encode_message(question, frames.QUESTION))
        return frames.receive_message(self._channel)

    def done(self, answer: Message) -> None:
        """The answer; nothing follows it."""
        self._send(*frames.encode_message(answer))

    def failed(self, error: TensorkilnError) -> None:
        """The answer is a typed error; nothing follows it."""
        self._send(frames.encode_json(frames.FAILED, error.to_problem()))

    def out_of_memory(self) -> bool:
        """Say that memory ran out; False when that cannot be said because part of a frame is already out."""
        if self._inside_frame:
            return False
        self._channel.sendall(_OUT_OF_MEMORY)
        return True

    def raw(self, content: bytes) -> None:
        """Bytes that need not be a frame."""
        self._send(content)

    def _send(self, *pieces: bytes) -> None:
        self._inside_frame = True
        for piece in frames.gathered(pieces):
            self._channel.sendall(piece)
        self._inside_frame = False


Task = Callable[[Message, Outlet], Message]
"""A task takes a request and returns its answer, or raises a TensorkilnError."""


@dataclass(frozen=True, slots=True)
class Birth:
    """What the fork server hands to a child. `scratch` is a directory that is the child's alone.

    At `assignments` its task arrives: a `Fork` order, and the socket at which the request is read and answered. A task
    that `gives_way` computes for long.
    """

    parent: int
    assignments: int
    stderr: int
    scratch: Path
    confinement: Confinement
    cgroup: Cgroup | None
    baseline_bytes: int
    gives_way: bool


def live(birth: Birth, tasks: Mapping[str, Task]) -> NoReturn:
    """Run the one of `tasks` that is assigned, and end the process."""
    status = EXIT_DEFECT
    outlet: Outlet | None = None
    try:
        _settle(birth)
        order, channel = _await_assignment()
        confine.limit_resources(order.limits, birth.baseline_bytes)
        outlet = Outlet(channel, birth.confinement.level)
        _work(order, tasks[order.kind], channel, outlet)
        status = 0
    except MemoryError:
        status = 0 if outlet is not None and outlet.out_of_memory() else EXIT_OUT_OF_MEMORY
    except BaseException:  # the last frame of this process: what is not said here is lost
        traceback.print_exc()
    finally:
        os._exit(status)


def _work(order: Fork, task: Task, channel: socket.socket, outlet: Outlet) -> None:
    confine.call_process(f"kiln {order.kind}")
    if order.kind in _UNCOLLECTED:
        gc.disable()
    try:
        outlet.done(task(frames.receive_message(channel), outlet))
    except TensorkilnError as error:
        outlet.failed(error)


def _settle(birth: Birth) -> None:
    os.setsid()
    if birth.cgroup is not None:
        birth.cgroup.enter()
    confine.die_with_parent(birth.parent)
    if birth.gives_way:
        confine.give_way(os.getpid())
    _keep_only(birth.assignments, birth.stderr)
    confine.call_process(RESERVE)
    gc.set_threshold(*_COLLECT_EVERY)
    # Python ignores the last two; a task is to end by them, which says more than an error number in native code.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    faulthandler.enable(2)
    birth.scratch.mkdir(mode=0o700)
    os.chdir(birth.scratch)
    tempfile.tempdir = str(birth.scratch)
    confine.volunteer_for_oom_killer()
    confine.renounce_privileges()
    birth.confinement.enter(birth.scratch)


def _await_assignment() -> tuple[Fork, socket.socket]:
    with socket.socket(fileno=_ASSIGNMENTS) as assignments:
        datagram, descriptors, _, _ = socket.recv_fds(assignments, control.MAX_DATAGRAM, 1)
    if not datagram:
        os._exit(0)
    order = control.decode(datagram)
    assert isinstance(order, Fork), "the fork server assigns nothing else"
    return order, socket.socket(fileno=descriptors[0])


def _keep_only(assignments: int, stderr: int) -> None:
    """Standard input from nowhere, both outputs into `stderr`, `assignments` as descriptor 3, and nothing else."""
    # Clear of 0 to 3, so that no dup2 below closes what a later one needs.
    assignments, stderr = (_above(descriptor, 3) for descriptor in (assignments, stderr))
    nowhere = _above(os.open(os.devnull, os.O_RDONLY), 3)
    os.dup2(nowhere, 0)
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    os.dup2(assignments, _ASSIGNMENTS)
    os.closerange(_ASSIGNMENTS + 1, os.sysconf("SC_OPEN_MAX"))


def _above(descriptor: int, floor: int) -> int:
    while descriptor <= floor:
        descriptor = os.dup(descriptor)
    return descriptor
