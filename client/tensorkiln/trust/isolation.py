"""Isolation levels of a compile, weakest first."""

from __future__ import annotations

from typing import Final

LEVELS: Final = ("none", "process", "landlock+seccomp", "external")
"""None; a process of its own; a process that the kernel restricts from files, network and other processes; a process
that is also sandboxed from outside."""


def is_at_least(level: str, minimum: str) -> bool:
    """Whether `level` is `minimum` or stronger. A level that is not in `LEVELS` is weaker than any."""
    return level in LEVELS and LEVELS.index(level) >= LEVELS.index(minimum)
