"""What is in the store of a running service, while nothing is being done to it."""

from __future__ import annotations

import time
from pathlib import Path

_AT_REST_WITHIN_S = 60.0


def at_rest(store: Path) -> set[Path]:
    """Every file of a store, once no compile is at an attempt, no job is open and nothing is being written.

    Attempts and jobs are given back behind the answer.
    """
    end = time.monotonic() + _AT_REST_WITHIN_S
    while time.monotonic() < end:
        try:
            files = {path for path in store.rglob("*") if path.is_file()}
            if not any(_is_under_way(path, store) for path in files):
                return files
        except FileNotFoundError:  # deleted since it was listed
            continue
        time.sleep(0.01)
    raise AssertionError("something is under way yet")


def _is_under_way(path: Path, store: Path) -> bool:
    # Of a file that is being written the name has a # in it.
    if "#" in path.name or path.parent == store / "jobs" / "open":
        return True
    return store / "crashes" in path.parents and b'"holder"' in path.read_bytes()
