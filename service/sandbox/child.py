"""The forked process: confine it, run its task, answer, end.

It never returns to the fork server.
"""

from __future__ import annotations

import faulthandler
import fcntl
import gc
import os
import signal
import socket
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from tensorkiln.errors import TensorkilnError

from . import confine, frames, landlock, paths, syscalls
from .cgroups import Cgroup
from .control import Fork
from .frames import Message
from .levels import Level

EXIT_OUT_OF_MEMORY: Final = 97
"""The status of a task whose allocation failed."""
EXIT_DEFECT: Final = 70
"""The status of a task that raised an exception other than TensorkilnError."""
_CHANNEL: Final = 3
# A task's process is short-lived, so rare collections are enough; objects of the warm-ups are frozen.
_COLLECT_EVERY: Final = (50_000, 20, 100)
_UNCOLLECTED: Final = frozenset({"prepare", "render", "split", "translate", "validate"})
"""Tasks without garbage collection: their objects form no cycles, and the search costs a tenth of the time or more."""
_THREADED: Final = frozenset({"compile"})
"""Tasks with a pool of threads. The others have one thread."""
_MOST_THREADS: Final = 8
_THREAD_BYTES: Final = confine.STACK_BYTES + 64 * confine.MIB
"""Address space of a thread: its stack, and an arena that the C library reserves for its allocations (mallopt(3))."""


def pool_threads(kind: str) -> int:
    """The threads in the pool of a task: one for each available processor, or none."""
    processors = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    return processors if kind in _THREADED and processors > 1 else 0


@dataclass(frozen=True, slots=True)
class Confinement:
    """Confinement by Landlock (`landlock_abi` 0: unused) and seccomp. `level` is the one that a canary confirmed."""

    landlock_abi: int
    readable: tuple[Path, ...]
    level: Level = Level.PROCESS

    def enter(self, own: Path, threads: int = 0) -> Executor | None:
        """Confine this process for the rest of its life; it may write in `own`. OSError when the kernel refuses.

        Returns a pool of `threads` threads, which are confined too; None for 0. No others can be started.
        """
        if self.landlock_abi:
            landlock.restrict(self.landlock_abi, self.readable, (own, *paths.WRITABLE))
        pool = _started(threads) if threads else None
        syscalls.forbid_processes()
        return pool


def _started(threads: int) -> Executor:
    """Landlock binds a thread from its start, seccomp each thread that installs the filter."""
    threading.stack_size(confine.STACK_BYTES)
    pool = ThreadPoolExecutor(threads, initializer=syscalls.forbid_processes)
    # A pool starts a thread when no other is idle: these wait for one another.
    barrier = threading.Barrier(threads)
    for waiting in [pool.submit(barrier.wait) for _ in range(threads)]:
        waiting.result()
    return pool


class Outlet:
    """The sending side of a task's channel. Each stage is sent at once, so that a crash can be attributed to it.

    `level` is the isolation of the process, `pool` are its other threads, if it has any.
    """

    def __init__(self, channel: socket.socket, level: Level = Level.PROCESS, pool: Executor | None = None) -> None:
        self._channel = channel
        self.level = level
        self.pool = pool

    def stage(self, name: str) -> None:
        """Report that the task begins the stage `name`."""
        self.raw(frames.encode(frames.STAGE, name.encode()))

    def done(self, answer: Message) -> None:
        self.raw(*frames.encode_message(answer))

    def failed(self, error: TensorkilnError) -> None:
        self.raw(frames.encode_json(frames.FAILED, error.to_problem()))

    def raw(self, *pieces: bytes) -> None:
        """Send bytes that need not form a frame."""
        for piece in frames.gathered(pieces):
            self._channel.sendall(piece)


Task = Callable[[Message, Outlet], Message]
"""A task takes a request and returns its answer, or raises a TensorkilnError."""


@dataclass(frozen=True, slots=True)
class Child:
    """The arguments of a child process.

    `channel` carries request and answer; `gives_way` lowers the priority; `threads` are those of its pool.
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
    threads: int


def run_child(child: Child, tasks: Mapping[str, Task]) -> NoReturn:
    """Run the ordered task and exit the process."""
    status = EXIT_DEFECT
    try:
        pool = _confine(child)
        confine.limit_resources(child.order.limits, child.baseline_bytes + child.threads * _THREAD_BYTES)
        channel = socket.socket(fileno=_CHANNEL)
        _work(child.order.kind, tasks[child.order.kind], channel, Outlet(channel, child.confinement.level, pool))
        status = 0
    except MemoryError:
        status = EXIT_OUT_OF_MEMORY
    except BaseException:  # the last stack frame of this process: an error not printed here is lost
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


def _confine(child: Child) -> Executor | None:
    os.setsid()
    confine.call_process(f"kiln {child.order.kind}")
    if child.cgroup is not None:
        child.cgroup.enter()
    confine.die_with_parent(child.parent)
    if child.gives_way:
        confine.give_way()
    _keep_only(child.channel, child.stderr)
    gc.set_threshold(*_COLLECT_EVERY)
    # Python ignores the last two. Death by the signal identifies the cause better than an errno in native code.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    faulthandler.enable(2)
    child.scratch.mkdir(mode=0o700)
    os.chdir(child.scratch)
    tempfile.tempdir = str(child.scratch)
    Path("/proc/self/oom_score_adj").write_text("1000")  # the first choice of the OOM killer
    confine.renounce_privileges()
    return child.confinement.enter(child.scratch, child.threads)


def _keep_only(channel: int, stderr: int) -> None:
    """Keep only: standard input from /dev/null, both outputs to `stderr`, and `channel` as descriptor 3."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    # Clear of 0 to 3, so that no dup2 below closes what a later one needs.
    channel, stderr, nowhere = (fcntl.fcntl(each, fcntl.F_DUPFD, _CHANNEL + 1) for each in (channel, stderr, nowhere))
    os.dup2(nowhere, 0)
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    os.dup2(channel, _CHANNEL)
    os.closerange(_CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))
