"""A cgroup of version 2 for each process of a fork server, where the service has a part of the tree for itself.

The processes of the service are in one leaf of that part, as a cgroup that shares out memory has none of its own
(cgroups(7), "no internal processes"), and each process that is forked for tasks is in another.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

LEAF: Final = "kiln-service"
"""Where the processes of the service are, which `DelegateSubgroup=` of systemd can see to as well."""
_PREFIX: Final = "kiln-compile-"
_CONTROLLERS: Final = frozenset({"memory", "pids", "cpu"})
_FIRST: Final = 1
"""The process id of the first process of a container, which only starts the service and reaps."""
_TASKS: Final = "1"
_ONE_PROCESSOR: Final = "100000 100000"
"""Microseconds of processor time in each period of so many (Documentation/admin-guide/cgroup-v2.rst)."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """That of one process, which enters it before it does anything."""

    path: Path

    def enter(self) -> None:
        """Move this process there. OSError when the kernel refuses."""
        (self.path / "cgroup.procs").write_text("0")

    def limit(self, memory_bytes: int) -> None:
        """Have the kernel end all of it when it has more memory, files in memory and the kernel's own included."""
        (self.path / "memory.max").write_text(str(memory_bytes))

    def end(self) -> bool | None:
        """End what is left of it and remove it; whether the kernel ended something for its memory, if that is known.

        One that is not empty yet stays, until a later fork server removes it.
        """
        ran_out: bool | None = None
        with suppress(OSError):
            events = dict(line.split() for line in (self.path / "memory.events").read_text().splitlines())
            ran_out = int(events["oom_kill"]) > 0
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        with suppress(OSError):
            self.path.rmdir()
        return ran_out


class Cgroups:
    """Makes the cgroups of one fork server, below `parent`."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._numbers = count()

    @classmethod
    def delegated(cls) -> Cgroups | None:
        """Those beside the leaf that this process is in; None when it is in none, or may make none there."""
        own = _own()
        if own is None or own.name != LEAF or not _shares_out(own.parent):
            return None
        made = cls(own.parent)
        made._sweep()
        try:
            made.make().end()
        except OSError:
            return None
        return made

    def make(self) -> Cgroup:
        """One with a task, a processor, and no memory that is swapped out. OSError when the kernel refuses."""
        cgroup = Cgroup(self._parent / f"{_PREFIX}{os.getpid()}-{next(self._numbers)}")
        cgroup.path.mkdir()
        try:
            (cgroup.path / "pids.max").write_text(_TASKS)
            (cgroup.path / "cpu.max").write_text(_ONE_PROCESSOR)
            (cgroup.path / "memory.oom.group").write_text("1")
            with suppress(FileNotFoundError):  # a kernel without swap
                (cgroup.path / "memory.swap.max").write_text("0")
        except OSError:
            cgroup.end()
            raise
        return cgroup

    def _sweep(self) -> None:
        """Remove what fork servers have left that are gone. The kernel keeps what still has processes."""
        for path in self._parent.glob(f"{_PREFIX}*"):
            owner = path.name.removeprefix(_PREFIX).partition("-")[0]
            if not Path("/proc", owner).exists():
                with suppress(OSError):
                    path.rmdir()


def move_into_leaf() -> None:
    """Make room for cgroups of compiles beside that of the service, if the cgroup of this process is its own alone.

    That is so in a systemd unit with `Delegate=yes`, and in a container whose /sys/fs/cgroup can be written to. Where
    it is not, nothing is changed: the processes of others are not ours to move.
    """
    own = _own()
    if own is None:
        return
    with suppress(OSError):
        if own.name != LEAF:
            if not _words(own / "cgroup.controllers") >= _CONTROLLERS:
                return
            processes = _words(own / "cgroup.procs")
            if processes - {str(_FIRST), str(os.getpid())}:
                return
            own = own / LEAF
            own.mkdir(exist_ok=True)
            for process in processes:
                (own / "cgroup.procs").write_text(process)
        (own.parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(_CONTROLLERS)))


def _shares_out(group: Path) -> bool:
    try:
        return _words(group / "cgroup.subtree_control") >= _CONTROLLERS
    except OSError:
        return False


def _words(path: Path) -> set[str]:
    return set(path.read_text().split())


def _own() -> Path | None:
    """The directory of this process's cgroup; None without one of version 2 in sight."""
    try:
        mine = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    except (OSError, StopIteration):
        return None
    for mount in mounts:
        # proc(5): ID, parent, device, root, mount point, ..., a hyphen, the type of the file system.
        root, point, kind = mount[3], mount[4], mount[mount.index("-") + 1]
        if kind == "cgroup2" and Path(mine).is_relative_to(root):
            return Path(point, Path(mine).relative_to(root))
    return None
