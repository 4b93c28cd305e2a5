"""What a canary goes for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Victim:
    """`planted` is a file outside the canary's directory that its user may write; `pid` is a process of that user.

    It tries for a file of `file_bytes` and for memory of `memory_bytes`. `files` are more files to read, and
    `addresses` places to connect to: `tcp` or `udp` with host and port, `unix` with a path.
    """

    planted: Path
    pid: int
    file_bytes: int
    memory_bytes: int
    files: tuple[Path, ...] = ()
    addresses: tuple[tuple[str, tuple[str, int] | str], ...] = ()


Attempt = Callable[[Victim], object]
"""Raises OSError when it is refused."""

Attempts = Mapping[str, Attempt]
"""By what a process can do that succeeds with one."""
