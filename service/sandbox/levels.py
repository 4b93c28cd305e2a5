"""How strongly a task is confined: the requested means (`Wall`) and the verified strength (`Level`)."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """Strength of the isolation of a task, weakest first; docs/sandbox.md says what each refuses."""

    PROCESS = "process"
    LANDLOCK = "landlock+seccomp"
    EXTERNAL = "external"

    @property
    def strength(self) -> int:
        """Rank among the levels; higher is stronger."""
        return list(Level).index(self)

    def reaches(self, other: Level) -> bool:
        """Whether this level is at least as strong as `other`."""
        return self.strength >= other.strength


class Wall(StrEnum):
    """How the service confines tasks, in addition to one process per task; docs/sandbox.md describes them."""

    AUTO = "auto"
    PROCESS = "process"
    BWRAP = "bwrap"
