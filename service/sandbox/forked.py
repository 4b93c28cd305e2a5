"""A forked process, seen from the fork server."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path
from typing import Final

from . import confine, control
from .cgroups import Cgroup, Cgroups
from .child import DONE, Birth, Job, live
from .confinement import Confinement
from .control import Ended, Fork
from .pages import Run

_READ_BYTES = 64 << 10
RELEASE_S: Final = 0.1
"""So long a process whose answer has been read may take to say that it is done."""
REST_S: Final = 5.0
"""How long a process is held for another job of its owner."""
ENOUGH_JOBS: Final = 64


@dataclass(slots=True, eq=False)
class Forked:
    """One process. `job` is None while it is in reserve; `begun` and `deadline` are times of `time.monotonic`.

    `order` is the last one that it got, of `jobs` so far; `used_s` is the processor time of those before it. One that
    rests has done its job for an owner, and is stopped until the next.
    """

    pid: int
    pidfd: int
    stderr: int
    scratch: Path
    inherited_mib: int
    baseline_bytes: int
    assignments: socket.socket
    cgroup: Cgroup | None = None
    job: int | None = None
    order: Fork | None = None
    jobs: int = 0
    used_s: float = 0.0
    begun: float = inf
    deadline: float = inf
    is_expired: bool = False
    is_cancelled: bool = False
    is_done: bool = False
    is_released: bool = False
    tail: bytearray = field(default_factory=bytearray)

    def hand_over(self, order: Fork, channel: int) -> bool:
        """Give the process a job and the job's socket; False when it does not take them, which is its end.

        OSError when the operating system does not pass them on.
        """
        try:
            if self.cgroup is not None:
                self.cgroup.limit((self.inherited_mib + order.limits.memory_mib + confine.KEPT_MIB) * confine.MIB)
            socket.send_fds(self.assignments, [control.encode(order)], [channel])
            if self.jobs:  # it rests; one in reserve may have begun, and whoever stops itself stays so
                signal.pidfd_send_signal(self.pidfd, signal.SIGCONT)
        except (BrokenPipeError, ConnectionResetError, BlockingIOError, ProcessLookupError):
            self.kill()
            return False
        except OSError:
            self.kill()
            raise
        return True

    def begin(self, order: Fork) -> None:
        """From now on the process is that of a job, and has so long."""
        if not order.owner:
            self.assignments.close()
        self.job, self.order = order.job, order
        self.jobs += 1
        self.tail.clear()
        self.is_done = self.is_released = False
        self.begun = time.monotonic()
        self.deadline = self.begun + order.limits.deadline_s

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Those of the fork server by which it hears from the process."""
        heard_at = self.assignments.fileno()
        return (self.pidfd, self.stderr) if heard_at < 0 else (self.pidfd, self.stderr, heard_at)

    @property
    def ran_s(self) -> float:
        """Seconds since it was given its job, 0 in reserve."""
        return max(time.monotonic() - self.begun, 0.0)

    def hear(self) -> bool:
        """Take in that the process has done its job; False when it says something else, or nothing more.

        One that says something else is cancelled.
        """
        try:
            said = self.assignments.recv(_READ_BYTES)
        except OSError:
            return False
        is_news, self.is_done = self.job is not None and not self.is_done, True
        if is_news and said == DONE:
            return True
        self.is_cancelled = self.is_cancelled or bool(said)
        return False

    def release(self) -> None:
        """The job has answered. Its process gets a moment to say so too."""
        self.is_released = True
        self.deadline = min(self.deadline, time.monotonic() + RELEASE_S)

    @property
    def may_rest(self) -> bool:
        """Whether the process and whoever waits for it agree that its job is done."""
        return self.is_done and self.is_released and not (self.is_expired or self.is_cancelled)

    def rest(self) -> float | None:
        """Stop the process, which has done its job; the processor seconds of that, None when it is to do no other.

        It is stopped because the time of a processor is for jobs, which have a deadline.
        """
        signal.pidfd_send_signal(self.pidfd, signal.SIGSTOP)
        self.listen()
        try:
            used_s = confine.processor_s(self.pid)
            memory = confine.memory(self.pid)
        except (OSError, LookupError):  # it ends, or nothing can be opened
            return None
        if self.jobs >= ENOUGH_JOBS or used_s >= confine.KEPT_S or not self._has_room(memory):
            return None
        spent_s, self.used_s = used_s - self.used_s, used_s
        self.job, self.begun, self.deadline = None, inf, time.monotonic() + REST_S
        return spent_s

    def _has_room(self, memory: confine.Memory) -> bool:
        """Whether another job has all the memory of one, and is not taken for what an earlier one took."""
        if self.order is None:
            return False
        inherited = self.inherited_mib * confine.MIB
        kept = max(memory.held - inherited, memory.addresses - self.baseline_bytes)
        # What ends by the memory that it took is told apart by the most that its process ever had.
        half = self.order.limits.memory_mib * confine.MIB // 2
        return kept < confine.KEPT_MIB * confine.MIB and memory.peak - inherited < half

    def may_do(self, order: Fork) -> bool:
        """Whether the process, which rests, is to do this job."""
        mine = self.order
        return mine is not None and (mine.owner, mine.limits) == (order.owner, order.limits)

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
            job=self.job if self.job is not None else -1,
            status=status,
            expired=self.is_expired,
            peak_mib=peak_mib,
            grown_mib=max(peak_mib - self.inherited_mib, 0),
            cpu_s=max(usage.ru_utime + usage.ru_stime - self.used_s, 0.0),
            stderr=self.tail.decode("utf-8", "replace"),
            ran_s=self.ran_s,
            cancelled=self.is_cancelled,
            ran_out=ran_out,
        )


class Nursery:
    """Forks processes that live for one of `jobs`, each with a directory of its own below `scratch`.

    They are confined by `confinement` as it is when they are forked, have the memory `written` for themselves, and let
    others go first when `gives_way`. Each is in a cgroup of its own where there are `cgroups`.
    """

    def __init__(
        self, scratch: Path, jobs: Mapping[str, Job], confinement: Confinement, cgroups: Cgroups | None
    ) -> None:
        self._scratch = scratch
        self._jobs = jobs
        self._cgroups = cgroups
        self.confinement = confinement
        self.written: Sequence[Run] = ()
        self.gives_way = False
        self._numbers = count()
        self.measure()

    def measure(self) -> None:
        """Take what this process has in memory for what the processes that it forks are born with."""
        self._inherited_mib = confine.anonymous_bytes() // confine.MIB
        self.baseline_bytes = confine.address_space_bytes()

    def fork(self) -> Forked:
        """A process that waits for its job. OSError when the operating system makes none."""
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
            memory = (self.baseline_bytes, self.written)
            live(Birth(parent, *ends, scratch, self.confinement, cgroup, *memory, self.gives_way), self._jobs)
        os.set_blocking(stderr, False)
        return Forked(pid, os.pidfd_open(pid), stderr, scratch, self._inherited_mib, self.baseline_bytes, ours, cgroup)
