"""How far a compile was kept from everything else, in order."""

from __future__ import annotations

from typing import Final

LEVELS: Final = ("none", "process", "landlock+seccomp", "external")
"""None; a process of its own; one that the kernel keeps from files, network and other processes; one that is walled
in from outside as well."""


def is_at_least(level: str, minimum: str) -> bool:
    """Whether `level` is `minimum` or stronger. A level that is not in `LEVELS` is weaker than any."""
    return level in LEVELS and LEVELS.index(level) >= LEVELS.index(minimum)
