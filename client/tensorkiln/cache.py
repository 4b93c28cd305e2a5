"""A bounded LRU cache of files on disk, whose contents can be fetched or computed again."""

from __future__ import annotations

import os
import random
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_UNFINISHED: Final = ".new-"
_UNFINISHED_S: Final = 3600.0
"""Seconds after which an unfinished file is abandoned: its writer was killed."""
_EVICTIONS: Final = 64
"""How often, on average, the directory is listed while as many bytes are written as the cache may have."""


class LocalCache:
    """Files by name in `directory`, `max_bytes` in total; the least recently used are evicted first.

    Writers list the directory now and then, at random, in proportion to the bytes that they write: for a moment the
    files may exceed the maximum by a 64th on average, however many processes write. No disk error makes a call fail.
    Safe for several threads and processes: files appear by rename only. Callers must verify the files that they read,
    and remove damaged ones.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes

    def read(self, name: str) -> bytes | None:
        """The contents of a file, which becomes the most recently used; None when there is none."""
        path = self._directory / name
        with suppress(OSError):
            content = path.read_bytes()
            with suppress(OSError):
                os.utime(path)
            return content
        return None

    def write(self, name: str, content: bytes) -> None:
        """Store `content` under this name; content larger than the whole cache is not stored."""
        if len(content) > self._max_bytes:
            return
        with suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, unfinished = tempfile.mkstemp(dir=self._directory, prefix=_UNFINISHED)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(unfinished, self._directory / name)
            except OSError:
                os.unlink(unfinished)
                raise
            # A listing takes 6 us for each file. A fixed count of writes would never be reached by short processes.
            if random.random() * self._max_bytes < _EVICTIONS * len(content):
                self._evict()

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with suppress(OSError):
            (self._directory / name).unlink()

    def _evict(self) -> None:
        found: list[tuple[float, int, str]] = []
        with os.scandir(self._directory) as entries:
            for entry in entries:
                # Another process may evict at the same time.
                with suppress(FileNotFoundError):
                    status = entry.stat()
                    if not entry.name.startswith(_UNFINISHED):
                        found.append((status.st_mtime, status.st_size, entry.path))
                    elif status.st_mtime < time.time() - _UNFINISHED_S:
                        os.unlink(entry.path)
        excess = sum(size for _, size, _ in found) - self._max_bytes
        for _, size, path in sorted(found):
            if excess <= 0:
                return
            with suppress(FileNotFoundError):
                os.unlink(path)
            excess -= size
