"""Processes as the kernel shows them."""

from __future__ import annotations

import time
from pathlib import Path


def ended_within(process: int, seconds: float) -> bool:
    """Whether a process ends in time."""
    until = time.monotonic() + seconds
    while alive(process):
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def alive(process: int) -> bool:
    """Whether a process runs; a zombie does not."""
    return state(process) not in ("", "Z")


def name(process: int) -> str:
    """What `ps` shows of a process; empty when it is gone."""
    return _read(process, "comm").strip()


def state(process: int) -> str:
    """The letter that proc(5) has for the state of a process; empty when it is gone."""
    return _read(process, "stat").rpartition(")")[2][1:2]


def _read(process: int, file: str) -> str:
    try:
        return Path(f"/proc/{process}/{file}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
