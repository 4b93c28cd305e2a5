"""Files that a power failure leaves as they are: what somebody has been promised is on the disk before they are told.

obstore (0.12) renames what it has written, synchronises nothing, and has no option to. A rename may reach the disk
before the bytes do, and then a torn file replaces one that was whole.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from secrets import randbelow
from typing import Final, TypeVar

from tensorkiln.whole_file import sync_folder

T = TypeVar("T")

# A disk takes several at once for little more than one. Not the threads that hash: nobody who needs no disk waits here.
_THREADS: Final = ThreadPoolExecutor(8, "kiln-disk")


class Disk:
    """Durable files below `root`, which is there. What cannot be done is an OSError."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept: set[Path] = set()

    async def write(self, path: str, content: bytes) -> None:
        """Have `content` at `path`. After a power failure meanwhile, that is as it was or as it is to be."""
        await _in_thread(lambda: self._write(self._root / path, content, os.replace))

    async def create(self, path: str, content: bytes) -> bool:
        """Have `content` at `path` unless something is there; whether it was written. What is there is durable then."""
        try:
            await _in_thread(lambda: self._write(self._root / path, content, os.link))
        except FileExistsError:
            await self.sync(path)
            return False
        return True

    async def sync(self, path: str) -> bool:
        """Make durable what is at `path`; False when nothing is."""
        try:
            await _in_thread(lambda: self._sync(self._root / path))
        except FileNotFoundError:
            return False
        return True

    def _write(self, path: Path, content: bytes, put: Callable[[Path, Path], None]) -> None:
        make_folder(path.parent)
        # What obstore calls an unfinished file, too: no listing has it, and a scrub removes it.
        unfinished = path.with_name(f"{path.name}#{randbelow(1 << 60)}")
        try:
            with open(unfinished, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            put(unfinished, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)
        self._keep(path.parent)

    def _sync(self, path: Path) -> None:
        _fsync(path)
        self._keep(path.parent)

    def _keep(self, folder: Path) -> None:
        """Make the names in a folder durable, and the folder, which somebody else may have made this moment."""
        sync_folder(folder)
        if folder in self._kept:
            return
        above = folder
        while above != self._root:
            above = above.parent
            sync_folder(above)
        self._kept.add(folder)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it that are missing; each is durable."""
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    folder.mkdir(mode, parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
