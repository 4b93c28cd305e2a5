"""How the processes of one fork server are confined, beyond what every one of them gives up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import landlock, paths, syscalls
from .levels import Level


@dataclass(frozen=True, slots=True)
class Confinement:
    """`landlock_abi` is 0 where Landlock is not used. `level` is what a canary found this to amount to."""

    landlock_abi: int
    readable: tuple[Path, ...]
    level: Level = Level.PROCESS

    def __post_init__(self) -> None:
        # What is the same for every process is made once, by the one that forks them.
        syscalls.prepare()

    def enter(self, own: Path) -> None:
        """Confine this process for the rest of its life; in the directory `own` it may write.

        Needs no_new_privs. OSError when the kernel refuses.
        """
        if self.landlock_abi:
            landlock.restrict(self.landlock_abi, self.readable, (own, *paths.WRITABLE))
        syscalls.forbid_processes()
