"""How strongly a task is confined: the requested means (`Wall`) and the verified strength (`Level`)."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """Strength of the isolation of a task, weakest first; docs/sandbox.md says what each refuses."""

    PROCESS = "process"
    LANDLOCK = "landlock+seccomp"
    EXTERNAL = "external"


class Wall(StrEnum):
    """How the service confines tasks, in addition to one process per task; docs/sandbox.md describes them."""

    AUTO = "auto"
    PROCESS = "process"
    BWRAP = "bwrap"
