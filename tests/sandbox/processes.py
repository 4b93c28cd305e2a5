"""Processes as the kernel shows them."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path


def await_state(process: int, letter: str) -> None:
    """Comes back when a process is in a state. AssertionError when it is gone."""
    while (now := state(process)) != letter:
        assert now, f"{process} is gone"
        time.sleep(0.002)


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


def stands(process: int) -> bool:
    """Whether a process is stopped, or is to stop as soon as it has a processor."""
    if state(process) == "T":
        return True
    pending = re.search(r"^ShdPnd:\s*(\w+)$", _read(process, "status"), re.MULTILINE)
    return pending is not None and bool(int(pending[1], 16) >> (signal.SIGSTOP - 1) & 1)


def _read(process: int, file: str) -> str:
    try:
        return Path(f"/proc/{process}/{file}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
