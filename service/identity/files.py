"""Small private files that appear whole or not at all, and one writer at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
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


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file at `path`. A reader, or a crash at any moment, meets the old content or the new."""
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
