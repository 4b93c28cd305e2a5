"""A directory in which one process writes at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_DIRECTORY_MODE: Final = 0o700
_LOCK: Final = "lock"


@contextmanager
def writing(directory: Path) -> Generator[None]:
    """Be the only one who writes in `directory`, which only this user can open, for as long as the block runs."""
    directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
