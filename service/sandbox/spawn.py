"""Start a fork server's process before anything else: its imports take most of a service's start.

This module imports nothing slow, and names warm-ups by strings.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tensorkiln.errors import UnavailableError

from . import control, paths
from .levels import Wall
from .scratch import Scratch

COMPILING: Final = f"{__package__}.tasks.rehearsal:rehearse"
"""For fork servers that compile."""
AFTERWARDS: Final = f"{__package__}.tasks.rehearsal:load_the_rest"
"""For fork servers that compile, when first idle."""
READING: Final = f"{__package__}.tasks.reading:rehearse"
"""For fork servers that only read requests and write answers: the compiler is not loaded."""

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
SCRATCH_BYTES: Final = 1 << 30
"""Size of the tmpfs that holds the files of all tasks in the container."""
NAMESPACES: Final = ("mnt", "pid", "net", "ipc")
"""Namespaces that the container does not share with the service."""
_SYSTEM: Final = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu")
_PACKAGES: Final = ("tensorkiln_server", "service", "tensorkiln", "passes", "stablehlo", "dialect")
_OPTIONS: Final = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "kiln")


class Spawned:
    """A fork server that loads `warm_ups`, inside bubblewrap if that is the `wall`.

    OSError when no process can be started, UnavailableError when `wall` is bubblewrap and it is not installed.
    """

    def __init__(
        self, warm_ups: Sequence[str], wall: Wall = Wall.AUTO, *, gives_way: bool = True, later: Sequence[str] = ()
    ) -> None:
        self.wall = wall
        self.scratch = Scratch()
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        order = control.Begin(str(self.scratch.path), wall.value, namespaces(), gives_way, tuple(later))
        try:
            with theirs:
                self.orders.send(control.encode(order))
                self.process = start(theirs, str(self.scratch.path), warm_ups, wall)
        except BaseException:
            self.orders.close()
            self.scratch.remove()
            raise

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
        inside(words, scratch, warm_ups) if wall is Wall.BWRAP else words,
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


def namespaces() -> tuple[str, ...]:
    """Identifiers of this process's namespaces, in the order of `NAMESPACES`."""
    return tuple(os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES)


def inside(program: Sequence[str], scratch: str, warm_ups: Iterable[str]) -> list[str]:
    """The bubblewrap command that runs `program` with no network and namespaces of its own.

    It may read libraries, Python, this compiler and the packages of `warm_ups`, and write to `scratch`.
    UnavailableError without bubblewrap.
    """
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise UnavailableError("KILN_ISOLATION=bwrap: there is no bwrap on the PATH; install bubblewrap.")
    packages = (*_PACKAGES, *(name.partition(":")[0].partition(".")[0] for name in warm_ups))
    installed = (Path(sys.prefix), Path(sys.base_prefix), *paths.installation(), *_sources(packages))
    return [
        *(bubblewrap, *_OPTIONS, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *(word for path in _SYSTEM for word in _show(Path(path))),
        *(word for path in _outermost(installed) for word in _show(path)),
        *("--size", str(SCRATCH_BYTES), "--tmpfs", scratch, "--chdir", "/", "--", *program),
    ]


def _sources(packages: Iterable[str]) -> Iterator[Path]:
    """Directories of `packages` on sys.path. Their siblings stay hidden: sys.path begins with the working directory."""
    for entry in sys.path:
        for package in packages:
            folder = Path(entry, package)
            if entry and folder.is_dir():
                yield folder


def _outermost(folders: Iterable[Path]) -> Iterator[Path]:
    """Each folder as named and as resolved, unless it lies in a system folder or in one already yielded."""
    seen = [Path(path) for path in _SYSTEM]
    for folder in sorted({name for each in folders for name in (each, each.resolve())}):
        if not any(folder.is_relative_to(other) for other in seen):
            seen.append(folder)
            yield folder


def _show(path: Path) -> tuple[str, ...]:
    if path.is_symlink():
        return ("--symlink", os.readlink(path), str(path))
    return ("--ro-bind-try", str(path), str(path))
