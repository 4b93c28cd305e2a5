"""Processes as the kernel shows them."""

from __future__ import annotations

from pathlib import Path


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
