"""The files of a store in a directory. What somebody has been promised is on the disk before they are told.

obstore (0.12) renames what it has written, synchronises nothing, and has no option to. A rename may reach the disk
before the bytes do, and then a torn file replaces one that was whole. It also takes three times the processor time for
a small file.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from secrets import randbelow
from typing import BinaryIO, Final, TypeVar

from tensorkiln.whole_file import sync_folder

T = TypeVar("T")

STORE_MODE: Final = 0o700
"""Of the directory of a store, which is for its owner alone."""

# A disk takes several at once for little more than one. Not the threads that hash: nobody who needs no disk waits here,
# nor does who needs it at some time for those who need it now.
_SYNCHRONISING: Final = ThreadPoolExecutor(8, "kiln-disk")
_WORKING: Final = ThreadPoolExecutor(8, "kiln-files")


class Disk:
    """The files below `root`, which is made again when it is gone. What cannot be done is an OSError."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept: set[Path] = set()

    async def read(self, path: str) -> bytes:
        """The content of the file at `path`. FileNotFoundError when there is none."""
        file = self._root / path
        # What is not there is asked for often, and needs no thread.
        os.stat(file)
        return await _in_thread(lambda: _read(file))

    async def write(self, path: str, content: bytes, *, durable: bool) -> None:
        """Have `content` at `path`.

        After a power failure meanwhile, that is as it was or as it is to be, if it is `durable`.
        """
        await _in_thread(lambda: self._write(self._root / path, content, os.replace, durable), durable)

    async def create(self, path: str, content: bytes, *, durable: bool) -> bool:
        """Have `content` at `path` unless something is there; whether it was written.

        What is there is durable then, whoever wrote it, if it is to be `durable`.
        """
        try:
            await _in_thread(lambda: self._write(self._root / path, content, os.link, durable), durable)
        except FileExistsError:
            if durable:
                await self.sync(path)
            return False
        return True

    async def sync(self, path: str) -> bool:
        """Make durable what is at `path`; False when nothing is."""
        try:
            await _in_thread(lambda: self._sync(self._root / path), durable=True)
        except FileNotFoundError:
            return False
        return True

    async def delete(self, path: str) -> None:
        """Have nothing at `path`. FileNotFoundError when nothing is."""
        await _in_thread(lambda: os.unlink(self._root / path))

    def _write(self, path: Path, content: bytes, put: Callable[[Path, Path], None], durable: bool) -> None:
        if durable:
            make_folder(self._root, STORE_MODE)
            make_folder(path.parent)
        # What obstore calls an unfinished file, too: no listing has it, and a scrub removes it.
        unfinished = path.with_name(f"{path.name}#{randbelow(1 << 60)}")
        try:
            with self._made(unfinished) as file:
                file.write(content)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            put(unfinished, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)
        if durable:
            self._keep(path.parent)

    def _made(self, path: Path) -> BinaryIO:
        """A new file; its folder is most often there."""
        try:
            return open(path, "xb")
        except FileNotFoundError:
            self._root.mkdir(STORE_MODE, parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            return open(path, "xb")

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


async def _in_thread(work: Callable[[], T], durable: bool = False) -> T:
    return await asyncio.get_running_loop().run_in_executor(_SYNCHRONISING if durable else _WORKING, work)


def _read(path: Path) -> bytes:
    # What is no file but has a name of ours is not to be waited for, as a pipe is.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(f"{path} is not a file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
