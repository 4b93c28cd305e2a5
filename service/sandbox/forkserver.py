"""The fork server: `python -m service.sandbox.forkserver CONTROL SCRATCH MODULE...`.

It imports what jobs need once, then forks one process per job, kills it at its deadline and reports how it ended. It
has one thread, makes no MLIR context, reads nothing that a user wrote, and ends when the service closes its socket.
"""

from __future__ import annotations

import gc
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from . import confine, control
from .child import Birth, Job, live
from .control import Cancel, Ended, Expired, Fork, Ready, Refused
from .syscalls import is_supported

_READ_BYTES = 64 << 10


@dataclass(slots=True)
class _Running:
    job: int
    pid: int
    pidfd: int
    stderr: int | None
    scratch: Path
    deadline: float
    is_expired: bool = False
    tail: bytearray = field(default_factory=bytearray)


class ForkServer:
    """Forks the jobs of `jobs` on the orders that arrive at `orders`."""

    def __init__(self, orders: socket.socket, scratch: Path, jobs: Mapping[str, Job]) -> None:
        self._orders = orders
        self._scratch = scratch
        self._jobs = jobs
        self._selector = selectors.DefaultSelector()
        self._selector.register(orders, selectors.EVENT_READ, self._obey)
        self._running: dict[int, _Running] = {}
        self._baseline_bytes = confine.address_space_bytes()
        self._tasks = confine.user_tasks()
        self._is_open = True

    def serve(self) -> None:
        """Until the service is gone."""
        mechanisms = ("fork", "rlimits", "no_new_privs", *(("seccomp",) if is_supported() else ()))
        self._report(Ready(os.getpid(), self._baseline_bytes // confine.MIB, mechanisms))
        while self._is_open:
            for key, _ in self._selector.select(self._patience()):
                # An event before this one may have closed its descriptor, and another may have it by now.
                if self._selector.get_map().get(key.fd) is key:
                    key.data()
            self._expire()
        for running in list(self._running.values()):
            _kill(running.pid)
            self._bury(running)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _patience(self) -> float | None:
        """Seconds to the next deadline."""
        awaited = [running.deadline for running in self._running.values() if not running.is_expired]
        return max(min(awaited) - time.monotonic(), 0.0) if awaited else None

    def _obey(self) -> None:
        datagram, descriptors, _, _ = socket.recv_fds(self._orders, control.MAX_DATAGRAM, 1)
        if not datagram:
            self._is_open = False
            return
        order = control.decode(datagram)
        if isinstance(order, Fork):
            self._fork(order, descriptors[0])
        elif isinstance(order, Cancel) and order.job in self._running:
            _kill(self._running[order.job].pid)

    def _fork(self, order: Fork, channel: int) -> None:
        stderr, stderr_of_child = os.pipe()
        scratch = self._scratch / str(order.job)
        parent = os.getpid()
        deadline = time.monotonic() + order.limits.deadline_s
        try:
            pid = os.fork()
        except OSError as error:
            os.close(stderr)
            self._report(Refused(order.job, str(error)))
            return
        finally:
            if os.getpid() == parent:
                os.close(channel)
                os.close(stderr_of_child)
        if pid == 0:
            birth = Birth(parent, channel, stderr_of_child, scratch, order.limits, self._baseline_bytes, self._tasks)
            live(birth, self._jobs[order.kind])
        os.set_blocking(stderr, False)
        running = _Running(order.job, pid, os.pidfd_open(pid), stderr, scratch, deadline)
        self._running[order.job] = running
        self._selector.register(running.pidfd, selectors.EVENT_READ, lambda: self._bury(running))
        self._selector.register(stderr, selectors.EVENT_READ, lambda: self._listen(running))

    def _listen(self, running: _Running) -> None:
        """Keep the end of what the job writes to its standard error."""
        if running.stderr is None:
            return
        try:
            written = os.read(running.stderr, _READ_BYTES)
        except BlockingIOError:
            return
        if not written:
            self._close_stderr(running)
        running.tail = (running.tail + written)[-control.STDERR_TAIL :]

    def _expire(self) -> None:
        now = time.monotonic()
        for running in self._running.values():
            if running.deadline <= now and not running.is_expired:
                running.is_expired = True
                # Told before the kill: a process with much memory takes its time to die.
                self._report(Expired(running.job))
                _kill(running.pid)

    def _bury(self, running: _Running) -> None:
        _kill(running.pid)
        _, status, usage = os.wait4(running.pid, 0)
        del self._running[running.job]
        self._selector.unregister(running.pidfd)
        os.close(running.pidfd)
        self._listen(running)
        self._close_stderr(running)
        shutil.rmtree(running.scratch, ignore_errors=True)
        self._report(
            Ended(
                job=running.job,
                status=status,
                expired=running.is_expired,
                peak_mib=usage.ru_maxrss >> 10,
                cpu_s=usage.ru_utime + usage.ru_stime,
                stderr=running.tail.decode("utf-8", "replace"),
            )
        )

    def _close_stderr(self, running: _Running) -> None:
        if running.stderr is not None:
            self._selector.unregister(running.stderr)
            os.close(running.stderr)
            running.stderr = None

    def _report(self, report: control.Report) -> None:
        try:
            self._orders.send(control.encode(report))
        except (BrokenPipeError, ConnectionResetError):
            self._is_open = False


def _kill(pid: int) -> None:
    """Kill a process that is not reaped yet, and whatever is left of its group."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it has not made its group yet, or its group is empty


def main(arguments: Sequence[str]) -> None:
    """Serve the socket with the descriptor of the first argument, with the directory of the second as scratch space."""
    descriptor, scratch, *modules = arguments
    # The service decides when this process ends: a Ctrl-C at the terminal reaches the whole process group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    orders = socket.socket(fileno=int(descriptor))
    jobs: Mapping[str, Job] = import_module("service.sandbox.jobs").JOBS
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()
    ForkServer(orders, Path(scratch), jobs).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
