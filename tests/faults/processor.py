"""Processor time, which a machine that is busy with other things changes less than the time on the clock."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.service.server import Server, children


def spent_by_all_s(server: Server) -> float:
    """Of the service, its fork servers and their processes, those that have ended among them; in ticks of 10 ms."""
    while True:
        forks = server.fork_servers
        young = [child for fork_server in forks for child in children(fork_server)]
        # A child that has ended since it was listed is with its parent now, which is read after it.
        ticks = [_ticks(pid) for pid in (*young, *forks, server.pid)]
        if None not in ticks:
            return sum(filter(None, ticks)) / os.sysconf("SC_CLK_TCK")


def processor_s(process: int) -> float:
    """Seconds that all threads of a process have had, to the nanosecond. OSError when there is none."""
    # clock_getcpuclockid(3), which the standard library does not have; <linux/posix-timers.h>: CPUCLOCK_SCHED.
    return time.clock_gettime(~process << 3 | 2)


def _ticks(process: int) -> int | None:
    """Of a process and of its children that have ended; None when it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return sum(map(int, fields[11:15]))
