"""What a service, a worker and their fork servers load, for the process that they are forked from in tests.

A forked service forks its first fork servers too, when it has one thread. What it starts later starts as always.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from threading import Lock
from typing import Final

from passes.warm_up import warm_up
from service.process import interpreter
from service.sandbox import confine, spawn
from service.sandbox.levels import Wall
from tensorkiln.compiler_build import build
from tests.forked import call

_LOADED: Final = (
    *("service.server.command", "service.server.prefork", "service.server.serve"),
    *("service.worker.__main__", "service.sandbox.tasks", "service.sandbox.tasks.rehearsal", "passes.gpu_back_end"),
    *("stablehlo.translate", "service.sandbox.forkserver", "tests.service.failing", "tests.service.failures"),
    *("tensorkiln_server", "tensorkiln.embedded"),
    *("service.identity.tokens", "uvicorn.lifespan.off", "uvicorn.loops.asyncio", "encodings.idna", "stringprep"),
)
_anew = spawn.start


class _ForkServer(subprocess.Popen[bytes]):
    """A child that this process has forked itself."""

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode, self.args = pid, None, []
        self.stdin = self.stdout = self.stderr = None
        self._child_created, self._waitpid_lock = True, Lock()


def _start(orders: socket.socket, scratch: str, warm_ups: Sequence[str], wall: Wall) -> subprocess.Popen[bytes]:
    if wall is Wall.BWRAP or confine.threads() > 1 + _waiting():
        return _anew(orders, scratch, warm_ups, wall)
    pid = os.fork()
    if pid == 0:
        _serve(orders.fileno(), warm_ups)
    return _ForkServer(pid)


def _waiting() -> int:
    """The threads that wait for the end of a parent, and hold no lock that a fork could copy."""
    return sum(thread.name == "parent-watchdog" for thread in threading.enumerate())


def _serve(orders: int, warm_ups: Sequence[str]) -> None:
    """Be the process that `spawn.start` would have started."""
    status = 1
    try:
        from service.sandbox.forkserver import main

        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        os.closerange(3, orders)
        os.closerange(orders + 1, os.sysconf("SC_OPEN_MAX"))
        environment = spawn.environment()
        os.environ.clear()
        os.environ.update(environment)
        call(spawn.program(orders, warm_ups))
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        main([str(orders), *warm_ups])
        status = 0
    except BaseException:  # the last frame of this process
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


interpreter.load_structlog()
interpreter.load_fastapi()
for _name in _LOADED:
    import_module(_name)
# The sources of the compiler are hashed, and its back end is set up, in each process once.
build()
warm_up()
spawn.start = _start
