"""The process of a fork server, which is begun before anything else is: its imports are most of the start of a service.

Nothing that takes long is imported here, and nothing has to be known yet but what is to be loaded.
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
# A task sees no secret of the service: these are all it inherits. The values after them make a compile repeatable
# and keep the fork server at one thread, without which it must not fork; nor is what is installed searched for plugins.
_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
_FIXED: Final = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}


class Spawned:
    """A fork server that loads `warm_ups`, inside bubblewrap if that is the `wall`, and waits for `begin`.

    OSError when no process can be made, UnavailableError without bubblewrap where that is asked for.
    """

    besides: ClassVar[tuple[str, ...]] = ()
    """What every fork server loads after its own warm-ups: by these, programs of the tests inject a compiler."""

    def __init__(self, warm_ups: Sequence[str], wall: Wall = Wall.AUTO) -> None:
        self.scratch = Scratch()
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.is_begun = False
        self._is_inside_bubblewrap = wall is Wall.BWRAP
        try:
            with theirs:
                self.process = _spawn(theirs, str(self.scratch.path), (*warm_ups, *self.besides), wall)
        except BaseException:
            self.orders.close()
            self.scratch.remove()
            raise

    def suits(self, wall: Wall) -> bool:
        """Whether it was begun where tasks are to be confined by `wall`."""
        return self._is_inside_bubblewrap is (wall is Wall.BWRAP)

    def begin(self, wall: Wall, *, gives_way: bool = True, later: Sequence[str] = ()) -> None:
        """Have it use what it has loaded, and get ready; once. One that is gone already is found out elsewhere."""
        if self.is_begun:
            return
        self.is_begun = True
        order = control.Begin(str(self.scratch.path), wall.value, external.namespaces(), gives_way, tuple(later))
        try:
            self.orders.send(control.encode(order))
        except OSError:
            return

    def abandon(self) -> None:
        """End it, of which nobody has made use."""
        self.process.kill()
        self.process.wait()
        self.orders.close()
        self.scratch.remove()


def _spawn(orders: socket.socket, scratch: str, warm_ups: Sequence[str], wall: Wall) -> subprocess.Popen[bytes]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    program = [sys.executable, "-P", "-m", f"{__package__}.forkserver", str(orders.fileno()), *warm_ups]
    return subprocess.Popen(
        external.inside(program, scratch, warm_ups) if wall is Wall.BWRAP else program,
        stdin=subprocess.DEVNULL,
        stdout=2,
        pass_fds=[orders.fileno()],
        env={**inherited, **_FIXED, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )
