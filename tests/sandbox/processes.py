"""Processes as the kernel shows them."""

from __future__ import annotations

from pathlib import Path


def name(process: int) -> str:
    """What `ps` shows of a process."""
    return Path(f"/proc/{process}/comm").read_text().strip()


def state(process: int) -> str:
    """The letter that proc(5) has for the state of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
