"""A forked process, seen from the fork server."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path

from . import confine, control
from .cgroups import Cgroup, Cgroups
from .child import Birth, Task, live
from .confinement import Confinement
from .control import Ended, Fork

_READ_BYTES = 64 << 10


@dataclass(slots=True, eq=False)
class Forked:
    """One process. `task` is None while it is in reserve; `begun` and `deadline` are times of `time.monotonic`."""

    pid: int
    pidfd: int
    stderr: int
    scratch: Path
    inherited_mib: int
    assignments: socket.socket
    cgroup: Cgroup | None = None
    task: int | None = None
    begun: float = inf
    deadline: float = inf
    is_expired: bool = False
    is_cancelled: bool = False
    tail: bytearray = field(default_factory=bytearray)

    def hand_over(self, order: Fork, channel: int) -> bool:
        """Give the process a task and the task's socket; False when it does not take them, which is its end.

        OSError when the operating system does not pass them on.
        """
        try:
            if self.cgroup is not None:
                self.cgroup.limit((self.inherited_mib + order.limits.memory_mib) * confine.MIB)
            socket.send_fds(self.assignments, [control.encode(order)], [channel])
        except (BrokenPipeError, ConnectionResetError, BlockingIOError):
            self.kill()
            return False
        except OSError:
            self.kill()
            raise
        finally:
            self.assignments.close()
        return True

    def begin(self, order: Fork) -> None:
        """From now on the process is that of a task, and has so long."""
        self.task = order.task
        self.tail.clear()
        self.begun = time.monotonic()
        self.deadline = self.begun + order.limits.deadline_s

    @property
    def ran_s(self) -> float:
        """Seconds since it was given its task, 0 in reserve."""
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
        """Kill the process, which nobody waits for any more; one that is being killed already ends by that."""
        if not (self.is_expired or self.is_cancelled):
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
        ran_out = None if self.cgroup is None else self.cgroup.end()
        os.close(self.pidfd)
        os.close(self.stderr)
        self.assignments.close()
        peak_mib = usage.ru_maxrss >> 10
        return Ended(
            task=self.task if self.task is not None else -1,
            status=status,
            expired=self.is_expired,
            peak_mib=peak_mib,
            grown_mib=max(peak_mib - self.inherited_mib, 0),
            cpu_s=usage.ru_utime + usage.ru_stime,
            stderr=self.tail.decode("utf-8", "replace"),
            ran_s=self.ran_s,
            cancelled=self.is_cancelled,
            ran_out=ran_out,
        )


class Forker:
    """Forks processes that live for one of `tasks`, each with a directory of its own below `scratch`.

    They are confined by `confinement` as it is when they are forked, and let others go first when `gives_way`. Each is
    in a cgroup of its own where there are `cgroups`.
    """

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
        """Take what this process has in memory for what the processes that it forks are born with."""
        self._inherited_mib = confine.anonymous_bytes() // confine.MIB
        self.baseline_bytes = confine.address_space_bytes()

    def fork(self) -> Forked:
        """A process that waits for its task. OSError when the operating system makes none."""
        parent = os.getpid()
        scratch = self._scratch / str(next(self._numbers))
        cgroup = None if self._cgroups is None else self._cgroups.make()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)  # a process that does not take what it is given keeps nobody else from theirs
        stderr, stderr_of_child = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            os.close(stderr)
            if cgroup is not None:
                cgroup.end()
            raise
        finally:
            if os.getpid() == parent:
                theirs.close()
                os.close(stderr_of_child)
        if pid == 0:
            ends = theirs.fileno(), stderr_of_child
            live(
                Birth(parent, *ends, scratch, self.confinement, cgroup, self.baseline_bytes, self.gives_way),
                self._tasks,
            )
        os.set_blocking(stderr, False)
        return Forked(pid, os.pidfd_open(pid), stderr, scratch, self._inherited_mib, ours, cgroup)
