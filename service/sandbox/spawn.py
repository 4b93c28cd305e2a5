"""Start a fork server's process before anything else: its imports take most of a service's start.

This module imports nothing slow, and needs only the warm-ups and the wall.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import ClassVar, Final

from . import control, external
from .levels import Wall
from .scratch import Scratch

END_GRACE_S: Final = 2.0
# Tasks inherit only these variables, so no secret of the service. The fixed values make compiles reproducible, keep the
# fork server single-threaded, because it must not fork otherwise, and stop pydantic's search for plugins.
_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
FIXED: Final = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}


class Spawned:
    """A fork server that loads `warm_ups`, inside bubblewrap if that is the `wall`, and waits for `begin`.

    OSError when no process can be started, UnavailableError when `wall` is bubblewrap and it is not installed.
    """

    besides: ClassVar[tuple[str, ...]] = ()
    """Warm-ups that every fork server loads after its own: tests inject a compiler through them."""

    def __init__(self, warm_ups: Sequence[str], wall: Wall = Wall.AUTO) -> None:
        self.scratch = Scratch()
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.is_begun = False
        self._is_inside_bubblewrap = wall is Wall.BWRAP
        try:
            with theirs:
                self.process = start(theirs, str(self.scratch.path), (*warm_ups, *self.besides), wall)
        except BaseException:
            self.orders.close()
            self.scratch.remove()
            raise

    def suits(self, wall: Wall) -> bool:
        """Whether it was started as `wall` requires: inside or outside bubblewrap."""
        return self._is_inside_bubblewrap is (wall is Wall.BWRAP)

    def begin(self, wall: Wall, *, gives_way: bool = True, later: Sequence[str] = ()) -> None:
        """Send `Begin`, once. A fork server that has died already is detected elsewhere."""
        if self.is_begun:
            return
        self.is_begun = True
        order = control.Begin(str(self.scratch.path), wall.value, external.namespaces(), gives_way, tuple(later))
        try:
            self.orders.send(control.encode(order))
        except OSError:
            return

    def abandon(self) -> None:
        """End an unused fork server and remove its files."""
        self.process.kill()
        self.process.wait()
        self.orders.close()
        self.scratch.remove()


def start(orders: socket.socket, scratch: str, warm_ups: Sequence[str], wall: Wall) -> subprocess.Popen[bytes]:
    """Start the process of a fork server that takes `orders`."""
    words = program(orders.fileno(), warm_ups)
    return subprocess.Popen(
        external.inside(words, scratch, warm_ups) if wall is Wall.BWRAP else words,
        stdin=subprocess.DEVNULL,
        stdout=2,
        pass_fds=[orders.fileno()],
        env=environment(),
    )


def program(orders: int, warm_ups: Sequence[str]) -> list[str]:
    """The command of a fork server that takes orders from this descriptor."""
    return [sys.executable, "-P", "-m", f"{__package__}.forkserver", str(orders), *warm_ups]


def environment() -> dict[str, str]:
    """The environment of a fork server."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **FIXED, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
