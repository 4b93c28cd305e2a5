"""How strongly a task is confined: what is asked for, and what a canary found to hold."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """Strength of the isolation of a task, weakest first; docs/sandbox.md says what each refuses."""

    PROCESS = "process"
    LANDLOCK = "landlock+seccomp"
    EXTERNAL = "external"

    @property
    def strength(self) -> int:
        """Its place among the levels: more is stronger."""
        return list(Level).index(self)

    def reaches(self, other: Level) -> bool:
        """Whether this level is as strong as `other`."""
        return self.strength >= other.strength


class Wall(StrEnum):
    """What the service is to confine tasks with, beside a process of their own.

    `auto` is all that the kernel offers to any process; `process` leaves Landlock out; `bwrap` starts the fork server
    itself inside bubblewrap, and confines its tasks as `auto` does.
    """

    AUTO = "auto"
    PROCESS = "process"
    BWRAP = "bwrap"
