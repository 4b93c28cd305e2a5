"""One cgroup v2 per forked process, where a part of the cgroup tree is delegated to the service.

The service's own processes move into one leaf, because a cgroup that distributes controllers to its children may hold
no process itself (cgroups(7), "no internal processes"). Each process forked for a task gets another leaf.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

LEAF: Final = "kiln-service"
"""The leaf of the service's own processes; `DelegateSubgroup=` of systemd can create it too."""
_PREFIX: Final = "kiln-compile-"
_CONTROLLERS: Final = frozenset({"memory", "pids", "cpu"})
_FIRST: Final = 1
"""The process id of the first process of a container, which only starts the service and reaps."""
_TRIED_BYTES: Final = 1 << 20
"""The memory of the cgroup that is made to see whether one can be made."""
_PERIOD_US: Final = 100_000
"""The period of cpu.max, in which a cgroup has so much processor time (Documentation/admin-guide/cgroup-v2.rst)."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The cgroup of one process, which enters it before anything else."""

    path: Path

    def enter(self) -> None:
        """Move the calling process into this cgroup. OSError when the kernel refuses."""
        (self.path / "cgroup.procs").write_text("0")

    def end(self) -> bool | None:
        """Kill the remaining processes and remove the cgroup; return whether the OOM killer acted, None if unknown.

        A cgroup that is not empty yet stays; a later fork server removes it.
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
        """Cgroups beside this process's leaf; None when it is in no such leaf or may not create cgroups there."""
        own = _own()
        with suppress(OSError):
            if own is not None and own.name == LEAF and _words(own.parent / "cgroup.subtree_control") >= _CONTROLLERS:
                made = cls(own.parent)
                made._sweep()
                made.make(_TRIED_BYTES).end()
                return made
        return None

    def make(self, most_bytes: int, threads: int = 0) -> Cgroup:
        """Create a cgroup of one process with a pool of `threads` threads, and without swap.

        It has a processor for each of these threads, or one. OSError when the kernel refuses.

        Above `most_bytes`, in-memory files and kernel memory included, the kernel kills the whole cgroup.
        """
        cgroup = Cgroup(self._parent / f"{_PREFIX}{os.getpid()}-{next(self._numbers)}")
        cgroup.path.mkdir()
        try:
            (cgroup.path / "pids.max").write_text(str(1 + threads))
            (cgroup.path / "cpu.max").write_text(f"{max(threads, 1) * _PERIOD_US} {_PERIOD_US}")
            (cgroup.path / "memory.max").write_text(str(most_bytes))
            (cgroup.path / "memory.oom.group").write_text("1")
            with suppress(FileNotFoundError):  # a kernel without swap
                (cgroup.path / "memory.swap.max").write_text("0")
        except OSError:
            cgroup.end()
            raise
        return cgroup

    def _sweep(self) -> None:
        """Remove cgroups of fork servers that have exited. The kernel keeps those that still hold processes."""
        for path in self._parent.glob(f"{_PREFIX}*"):
            owner = path.name.removeprefix(_PREFIX).partition("-")[0]
            if not Path("/proc", owner).exists():
                with suppress(OSError):
                    path.rmdir()


def move_into_leaf() -> None:
    """Move the service into a leaf and enable controllers beside it, if no foreign process shares its cgroup.

    That holds in a systemd unit with `Delegate=yes` and in a container with a writable /sys/fs/cgroup. Elsewhere
    nothing changes: processes of other programs must not be moved.
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


def _words(path: Path) -> set[str]:
    return set(path.read_text().split())


def _own() -> Path | None:
    """The directory of this process's cgroup; None when no cgroup v2 mount shows it."""
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
