"""Processor time, which a machine that is busy with other things changes less than the time on the clock."""

from __future__ import annotations

import os
from pathlib import Path

from tests.service.server import Server, children


def spent_by_all_s(server: Server) -> float:
    """Of the service, its fork servers and their processes, those that have ended among them; in ticks of 10 ms."""
    forks, ticks = server.fork_servers, 0
    for pid in (server.pid, *forks, *(child for fork_server in forks for child in children(fork_server))):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
