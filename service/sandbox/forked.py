"""A forked process, seen from the fork server."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path

from . import confine, control
from .child import Birth, Job, live
from .confinement import Confinement
from .control import Ended, Fork
from .pages import Run

_READ_BYTES = 64 << 10


@dataclass(slots=True, eq=False)
class Forked:
    """One process. `job` is None while it is in reserve; `begun` and `deadline` are times of `time.monotonic`."""

    pid: int
    pidfd: int
    stderr: int
    scratch: Path
    inherited_mib: int
    assignments: socket.socket
    job: int | None = None
    begun: float = inf
    deadline: float = inf
    is_expired: bool = False
    is_cancelled: bool = False
    tail: bytearray = field(default_factory=bytearray)

    def hand_over(self, order: Fork, channel: int) -> bool:
        """Give the process a job and the job's socket; False when it is gone."""
        try:
            socket.send_fds(self.assignments, [control.encode(order)], [channel])
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def begin(self, order: Fork) -> None:
        """From now on the process is that of a job, and has so long."""
        self.assignments.close()
        self.job = order.job
        self.begun = time.monotonic()
        self.deadline = self.begun + order.limits.deadline_s

    @property
    def ran_s(self) -> float:
        """Seconds since it was given its job, 0 in reserve."""
        return max(time.monotonic() - self.begun, 0.0)

    def listen(self) -> bool:
        """Keep the end of what the process writes to its standard error; False when it has closed it."""
        try:
            written = os.read(self.stderr, _READ_BYTES)
        except BlockingIOError:
            return True
        self.tail = (self.tail + written)[-control.STDERR_TAIL :]
        return bool(written)

    def cancel(self) -> None:
        """Kill the process, which nobody waits for any more."""
        self.is_cancelled = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None
        self.kill()

    def kill(self) -> None:
        """Kill the process, which is not reaped yet, and whatever is left of its group."""
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it has not made its group yet, or its group is empty

    def bury(self) -> Ended:
        """Kill the process and reap it; how it ended."""
        self.kill()
        _, status, usage = os.wait4(self.pid, 0)
        self.listen()
        os.close(self.pidfd)
        os.close(self.stderr)
        self.assignments.close()
        peak_mib = usage.ru_maxrss >> 10
        return Ended(
            job=self.job if self.job is not None else -1,
            status=status,
            expired=self.is_expired,
            peak_mib=peak_mib,
            grown_mib=max(peak_mib - self.inherited_mib, 0),
            cpu_s=usage.ru_utime + usage.ru_stime,
            stderr=self.tail.decode("utf-8", "replace"),
            ran_s=self.ran_s,
            cancelled=self.is_cancelled,
        )

    def remove_files(self) -> None:
        """What the process has left in its directory, and that."""
        shutil.rmtree(self.scratch, ignore_errors=True)


class Nursery:
    """Forks processes that live for one of `jobs`, each with a directory of its own below `scratch`.

    They are confined by `confinement` as it is when they are forked, have the memory `written` for themselves, and let
    others go first when `gives_way`.
    """

    def __init__(self, scratch: Path, jobs: Mapping[str, Job], confinement: Confinement) -> None:
        self._scratch = scratch
        self._jobs = jobs
        self.confinement = confinement
        self.written: Sequence[Run] = ()
        self.gives_way = False
        self._numbers = count()
        self._tasks = confine.user_tasks()
        self._inherited_mib = confine.anonymous_bytes() // confine.MIB
        self.baseline_bytes = confine.address_space_bytes()

    def fork(self) -> Forked:
        """A process that waits for its job. OSError when the operating system makes none."""
        parent = os.getpid()
        scratch = self._scratch / str(next(self._numbers))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        stderr, stderr_of_child = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            os.close(stderr)
            raise
        finally:
            if os.getpid() == parent:
                theirs.close()
                os.close(stderr_of_child)
        if pid == 0:
            ends = theirs.fileno(), stderr_of_child
            memory = (self.baseline_bytes, self.written)
            live(Birth(parent, *ends, scratch, self.confinement, *memory, self._tasks, self.gives_way), self._jobs)
        os.set_blocking(stderr, False)
        return Forked(pid, os.pidfd_open(pid), stderr, scratch, self._inherited_mib, ours)
