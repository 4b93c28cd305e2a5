"""A forked process, seen from the fork server."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from . import confine, control
from .cgroups import Cgroup, Cgroups
from .child import Child, Confinement, Task, pool_threads, run_child
from .control import Ended, Fork

_READ_BYTES = 64 << 10


@dataclass(slots=True, eq=False)
class Forked:
    """The process of a task; `begun` and `deadline` are times of `time.monotonic`."""

    pid: int
    pidfd: int
    stderr: int
    scratch: Path
    inherited_mib: int
    task: int
    begun: float
    deadline: float
    cgroup: Cgroup | None = None
    is_expired: bool = False
    is_cancelled: bool = False
    tail: bytearray = field(default_factory=bytearray)

    def read_stderr(self) -> bool:
        """Read the process's standard error and keep its end; False once the process has closed it."""
        try:
            written = os.read(self.stderr, _READ_BYTES)
        except BlockingIOError:
            return True
        self.tail = (self.tail + written)[-control.STDERR_TAIL :]
        return bool(written)

    def cancel(self) -> None:
        """Kill the process because its caller left; `is_cancelled` is set only if it was still running."""
        if not (self.is_expired or self.is_cancelled):
            self.is_cancelled = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None
        self.kill()

    def kill(self) -> None:
        """Kill the process, which must not be reaped yet, and the rest of its process group."""
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it has not made its group yet, or its group is empty

    def reap(self) -> Ended:
        """Kill and reap the process; return how it ended."""
        self.kill()
        _, status, usage = os.wait4(self.pid, 0)
        self.read_stderr()
        ran_out = None if self.cgroup is None else self.cgroup.end()
        os.close(self.pidfd)
        os.close(self.stderr)
        peak_mib = usage.ru_maxrss >> 10
        return Ended(
            task=self.task,
            status=status,
            expired=self.is_expired,
            peak_mib=peak_mib,
            grown_mib=max(peak_mib - self.inherited_mib, 0),
            cpu_s=usage.ru_utime + usage.ru_stime,
            stderr=self.tail.decode("utf-8", "replace"),
            ran_s=time.monotonic() - self.begun,
            cancelled=self.is_cancelled,
            ran_out=ran_out,
        )


class Forker:
    """Forks one confined process per task, each with its own directory below `scratch`, and a cgroup, if possible."""

    def __init__(
        self, scratch: Path, tasks: Mapping[str, Task], confinement: Confinement, cgroups: Cgroups | None
    ) -> None:
        self._scratch = scratch
        self._tasks = tasks
        self._cgroups = cgroups
        self.confinement = confinement
        self.gives_way = False
        self._numbers = count()
        self.measure()

    def measure(self) -> None:
        """Measure the memory that forked processes inherit from this one."""
        self.baseline_bytes, inherited_bytes = confine.memory_bytes()
        self._inherited_mib = inherited_bytes // confine.MIB

    def fork(self, order: Fork, channel: int) -> Forked:
        """Fork the process of a task with `channel` as its socket. OSError when the operating system refuses."""
        parent = os.getpid()
        scratch = self._scratch / str(next(self._numbers))
        most_bytes = (self._inherited_mib + order.limits.memory_mib) * confine.MIB
        threads = pool_threads(order.kind)
        cgroup = None if self._cgroups is None else self._cgroups.make(most_bytes, threads)
        stderr, stderr_of_child = os.pipe()
        try:
            begun = time.monotonic()
            pid = os.fork()
        except OSError:
            os.close(stderr)
            if cgroup is not None:
                cgroup.end()
            raise
        finally:
            if os.getpid() == parent:
                os.close(stderr_of_child)
        if pid == 0:
            confined = self.confinement, cgroup, self.baseline_bytes, self.gives_way, threads
            run_child(Child(parent, order, channel, stderr_of_child, scratch, *confined), self._tasks)
        os.set_blocking(stderr, False)
        deadline = begun + order.limits.deadline_s
        pidfd = os.pidfd_open(pid)
        return Forked(pid, pidfd, stderr, scratch, self._inherited_mib, order.task, begun, deadline, cgroup)
