"""The directory of one fork server below the temporary directory, and the end of those whose service is gone.

A service locks its directory (flock(2)) as long as it lives, however it ends: what is not locked is nobody's.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from .removal import remove

# Not that of releases which held no lock: one of those may still run.
_PREFIX: Final = "kiln-scratch-"


class Scratch:
    """A new directory at `path`, which no `sweep` removes until this process ends. OSError when none can be made."""

    def __init__(self) -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            # A sweep may have come between.
            with suppress(BlockingIOError, FileNotFoundError):
                self._lock: int | None = _lock(self.path)
                if self.path.exists():
                    return
                os.close(self._lock)

    def remove(self) -> None:
        """Remove the directory and all that is in it, as far as that can be done, without an error."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            remove(self.path)
            os.close(lock)


def sweep() -> None:
    """Remove what this user's services have left that are gone, as far as that can be done, without an error."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with suppress(OSError):
                    _remove_forsaken(Path(entry.path))


def _remove_forsaken(path: Path) -> None:
    lock = _lock(path)
    try:
        if os.fstat(lock).st_uid == os.getuid():
            remove(path)
    finally:
        os.close(lock)


def _lock(path: Path) -> int:
    """A descriptor that holds the lock of a directory; BlockingIOError when another does."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(directory)
        raise
    return directory
