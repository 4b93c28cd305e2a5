"""The forked process: confine it, run its task, answer, end.

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

from . import confine, frames
from .cgroups import Cgroup
from .confinement import Confinement
from .control import Fork
from .frames import Message
from .levels import Level

EXIT_OUT_OF_MEMORY: Final = 97
"""The status of a task whose allocation failed while it was in the middle of a frame."""
EXIT_DEFECT: Final = 70
"""The status of a task that raised an exception which is no TensorkilnError."""

_CHANNEL: Final = 3
# A process ends soon and its memory with it; what a warm-up has left is frozen and looked at no more.
_COLLECT_EVERY: Final = (50_000, 20, 100)
_UNCOLLECTED: Final = frozenset({"prepare", "render", "split", "translate", "validate"})
"""Tasks that read graphs and programs, whose objects have no cycles: to look for some takes a tenth of their time, and
a third of a translation's.
"""
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
class Child:
    """What the fork server hands to a child. `scratch` is a directory that is the child's alone.

    `channel` is the socket at which the request of the task is read and answered. A task that `gives_way` computes for
    long.
    """

    parent: int
    order: Fork
    channel: int
    stderr: int
    scratch: Path
    confinement: Confinement
    cgroup: Cgroup | None
    baseline_bytes: int
    gives_way: bool


def run_child(child: Child, tasks: Mapping[str, Task]) -> NoReturn:
    """Run the one of `tasks` that is ordered, and end the process."""
    status = EXIT_DEFECT
    outlet: Outlet | None = None
    try:
        _confine(child)
        confine.limit_resources(child.order.limits, child.baseline_bytes)
        channel = socket.socket(fileno=_CHANNEL)
        outlet = Outlet(channel, child.confinement.level)
        _work(child.order.kind, tasks[child.order.kind], channel, outlet)
        status = 0
    except MemoryError:
        status = 0 if outlet is not None and outlet.out_of_memory() else EXIT_OUT_OF_MEMORY
    except BaseException:  # the last frame of this process: what is not said here is lost
        traceback.print_exc()
    finally:
        os._exit(status)


def _work(kind: str, task: Task, channel: socket.socket, outlet: Outlet) -> None:
    if kind in _UNCOLLECTED:
        gc.disable()
    try:
        outlet.done(task(frames.receive_message(channel), outlet))
    except TensorkilnError as error:
        outlet.failed(error)


def _confine(child: Child) -> None:
    os.setsid()
    confine.call_process(f"kiln {child.order.kind}")
    if child.cgroup is not None:
        child.cgroup.enter()
    confine.die_with_parent(child.parent)
    if child.gives_way:
        confine.give_way()
    _keep_only(child.channel, child.stderr)
    gc.set_threshold(*_COLLECT_EVERY)
    # Python ignores the last two; a task is to end by them, which says more than an error number in native code.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    faulthandler.enable(2)
    child.scratch.mkdir(mode=0o700)
    os.chdir(child.scratch)
    tempfile.tempdir = str(child.scratch)
    confine.volunteer_for_oom_killer()
    confine.renounce_privileges()
    child.confinement.enter(child.scratch)


def _keep_only(channel: int, stderr: int) -> None:
    """Standard input from nowhere, both outputs into `stderr`, `channel` as descriptor 3, and nothing else."""
    # Clear of 0 to 3, so that no dup2 below closes what a later one needs.
    channel, stderr = (_above(descriptor, 3) for descriptor in (channel, stderr))
    nowhere = _above(os.open(os.devnull, os.O_RDONLY), 3)
    os.dup2(nowhere, 0)
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    os.dup2(channel, _CHANNEL)
    os.closerange(_CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))


def _above(descriptor: int, floor: int) -> int:
    while descriptor <= floor:
        descriptor = os.dup(descriptor)
    return descriptor
