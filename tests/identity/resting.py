"""Processes that have done a job and are held for further ones of the same caller."""

from __future__ import annotations

import time

from tests.sandbox.processes import stands
from tests.service.server import Server, children


def at_rest(fork_server: int) -> frozenset[int]:
    """Those of a fork server."""
    return frozenset(pid for pid in children(fork_server) if stands(pid))


def await_none_at_rest(server: Server) -> None:
    """Come back when none is held for what was asked before; never is for the time-out of the test."""
    while any(map(at_rest, server.fork_servers)):
        time.sleep(0.05)
