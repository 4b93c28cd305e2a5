"""The confinement of one fork server's processes, in addition to the limits in `confine`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import landlock, paths, syscalls
from .levels import Level


@dataclass(frozen=True, slots=True)
class Confinement:
    """Confinement by Landlock (`landlock_abi` 0: unused) and seccomp. `level` is the one that a canary confirmed."""

    landlock_abi: int
    readable: tuple[Path, ...]
    level: Level = Level.PROCESS

    def __post_init__(self) -> None:
        # Build the filter once, in the parent: every fork inherits it.
        syscalls.prepare()

    def enter(self, own: Path) -> None:
        """Confine this process for the rest of its life; in the directory `own` it may write.

        Needs no_new_privs. OSError when the kernel refuses.
        """
        if self.landlock_abi:
            landlock.restrict(self.landlock_abi, self.readable, (own, *paths.WRITABLE))
        syscalls.forbid_processes()
