"""The scratch directory of a fork server: locked while its service lives, and removed with what tasks have written.

A service holds a lock (flock(2)) on its directory while it lives, however it ends: an unlocked one is abandoned.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final


def remove(path: Path) -> None:
    """Remove a directory and its contents; entries that cannot be removed stay, without an error.

    Links are not followed. A task makes no directories: seccomp refuses that, and nothing here is deep.
    """
    with suppress(RecursionError):  # where there is no seccomp
        shutil.rmtree(path, ignore_errors=True)


def removal(directory: Path) -> Iterator[None]:
    """Remove a directory as `remove` does, one file at each step."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                os.unlink(entry)
            yield
    remove(directory)


# Differs from the prefix of releases without the lock: one of those may still run.
_PREFIX: Final = "kiln-scratch-"


class Scratch:
    """A new directory at `path`, which no `sweep` removes until this process ends. OSError when it cannot be made."""

    def __init__(self) -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            # A sweep may have removed it before the lock.
            with suppress(BlockingIOError, FileNotFoundError):
                self._lock: int | None = _lock(self.path)
                if self.path.exists():
                    return
                os.close(self._lock)

    def remove(self) -> None:
        """Remove the directory and its contents as far as possible, without an error."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            remove(self.path)
            os.close(lock)


def sweep() -> None:
    """Remove the directories of this user's dead services as far as possible, without an error."""
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
    """Lock a directory and return its descriptor; BlockingIOError when another process holds the lock."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(directory)
        raise
    return directory
