"""A store in a directory: files are written, read and listed. A durable write is on the disk before it returns.

obstore (0.12), which buckets are read with, renames files without fsync: the rename may reach the disk before the
bytes, and then a torn file replaces a whole one. It takes three times the processor time for a small file, and lists
nothing of a folder with one name of unusual characters, or with a link that leads to itself.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import stat
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from secrets import randbelow
from typing import BinaryIO, Final, TypeAlias, TypeVar

from service import clock
from tensorkiln.whole_file import sync_folder

T = TypeVar("T")

STORE_MODE: Final = 0o700
"""The mode of the directory of a store: only its owner has access."""

# Several fsyncs at once take little longer than one. These threads do not hash, so that hashing never waits for a disk.
# Durable writes have their own, so that other reads and writes do not wait for them.
_SYNCHRONISING: Final = ThreadPoolExecutor(8, "kiln-disk")
_WORKING: Final = ThreadPoolExecutor(8, "kiln-files")
_Identity: TypeAlias = tuple[int, int]
_NOWHERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""Errors which say that there is nothing at a path. Other errors do not say what is there."""
_UNSAYABLE: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, and the surrogates of bytes that are not UTF-8."""
_LONGEST: Final = 200
"""Maximum bytes of a record's name. A file's may have 255: attempts, claims and writers add suffixes."""
_UNFINISHED: Final = re.compile(r"[^#]*#[0-9]+")
_PIECE: Final = 1000
"""Files that are listed in one call to a thread."""


@dataclass(frozen=True, slots=True)
class Item:
    """One object of a store: its size in bytes, and when it was last written or used, in seconds since 1970.

    `version` changes whenever the object does.
    """

    path: str
    size: int
    used: float
    version: tuple[object, ...] = ()


class Disk:
    """The files below `root`, which is made when it is missing. Methods raise OSError when they fail."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # Joining paths takes pathlib as long as the system takes to look at one.
        self._prefix = f"{root}{os.sep}"
        self._kept: set[Path] = set()

    async def looks(self, paths: Iterable[str]) -> list[Item | None]:
        """What is at each of these paths; None where there is no file."""
        # Two microseconds for each, and no task, after which the caller would wait for other tasks.
        return [self._look(path) for path in paths]

    def _look(self, path: str) -> Item | None:
        with suppress(FileNotFoundError):
            return _item(path, os.stat(self._prefix + path))
        return None

    def touch(self, path: str, after_s: float) -> bool:
        """Mark a file as used unless it was within `after_s` seconds. False when that cannot be done."""
        file = self._prefix + path
        try:
            if clock.time() - os.stat(file).st_mtime >= after_s:
                os.utime(file)
        except OSError:
            return False  # there is none, or it is another user's
        return True

    async def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, sorted, except those that are too long for a record."""
        return sorted(await asyncio.to_thread(file_names, self.root / folder))

    async def items(self, prefix: str) -> AsyncGenerator[Item]:
        """The files in the folder `prefix` and its subfolders."""
        found = files_below(self.root, prefix.rstrip("/"))
        while piece := await asyncio.to_thread(lambda: list(islice(found, _PIECE))):
            for path, status in piece:
                yield _item(path, status)

    async def read(self, path: str) -> bytes:
        """The content of the file at `path`. FileNotFoundError when there is none."""
        file = self.root / path
        # Missing files are common, and need no thread.
        os.stat(file)
        return await _in_thread(lambda: _read(file))

    async def write(self, path: str, content: bytes, *, durable: bool) -> None:
        """Write or replace the file at `path`. `durable`: a power failure leaves the old content or the new."""
        await _in_thread(lambda: self._write(self.root / path, content, os.replace, durable), durable)

    async def create(self, path: str, content: bytes, *, durable: bool) -> bool:
        """Write `content` to `path` unless there is a file, which is made durable, too; whether it was written."""
        try:
            await _in_thread(lambda: self._write(self.root / path, content, os.link, durable), durable)
        except FileExistsError:
            if durable:
                await self.sync(path)
            return False
        return True

    async def sync(self, path: str) -> bool:
        """Make the file at `path` durable; False when there is none."""
        try:
            await _in_thread(lambda: self._sync(self.root / path), durable=True)
        except FileNotFoundError:
            return False
        return True

    async def delete(self, path: str) -> None:
        """Remove the file at `path`. FileNotFoundError when there is none."""
        await _in_thread(lambda: os.unlink(self.root / path))

    def _write(self, path: Path, content: bytes, put: Callable[[Path, Path], None], durable: bool) -> None:
        if durable:
            make_folder(self.root, STORE_MODE)
            make_folder(path.parent)
        # No listing has a file of this name, and a scrub removes it.
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
        """A new file. Its folder is made if it is missing."""
        try:
            return open(path, "xb")
        except FileNotFoundError:
            self.root.mkdir(STORE_MODE, parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            return open(path, "xb")

    def _sync(self, path: Path) -> None:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        self._keep(path.parent)

    def _keep(self, folder: Path) -> None:
        """Make the names in a folder durable, and the folder itself: another process may have just made it."""
        sync_folder(folder)
        if folder in self._kept:
            return
        above = folder
        while above != self.root:
            above = above.parent
            sync_folder(above)
        self._kept.add(folder)


def _item(path: str, found: os.stat_result) -> Item:
    version = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
    return Item(path, found.st_size, found.st_mtime, version)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it that are missing; each is durable."""
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    folder.mkdir(mode, parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


async def _in_thread(work: Callable[[], T], durable: bool = False) -> T:
    return await asyncio.get_running_loop().run_in_executor(_SYNCHRONISING if durable else _WORKING, work)


def _read(path: Path) -> bytes:
    # O_NONBLOCK, as opening a pipe would block.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(f"{path} is not a file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def file_names(folder: Path) -> list[str]:
    """The names of the files in a folder that are not too long for a record. OSError when it cannot be listed."""
    return [
        entry.name
        for entry in _entries(folder)
        if len(entry.name.encode()) <= _LONGEST and not _is_unfinished(entry) and _if_there(entry.is_file)
    ]


def files_below(root: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files in the folder `prefix` and its subfolders, by path below `root`. OSError as in `file_names`.

    Links are followed, except links to a folder that they are in.
    """
    beginning = frozenset(map(_identity, Path(os.path.realpath(root / prefix)).parents))
    folders: list[tuple[str, frozenset[_Identity | None]]] = [(prefix, beginning)]
    while folders:
        path, above = folders.pop()
        itself = _identity(root / path)
        if itself in above:
            continue
        for entry in _entries(root / path):
            status = _if_there(entry.stat)
            inner = f"{path}/{entry.name}" if path else entry.name
            if status is not None and stat.S_ISDIR(status.st_mode):
                folders.append((inner, above | {itself}))
            elif status is not None and stat.S_ISREG(status.st_mode) and not _is_unfinished(entry):
                yield inner, status


def _identity(folder: Path) -> _Identity | None:
    status = _if_there(partial(os.stat, folder))
    return (status.st_dev, status.st_ino) if status is not None else None


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    listed = _if_there(partial(os.scandir, folder))
    if listed is None:
        return []
    with listed:
        return [entry for entry in listed if _UNSAYABLE.search(entry.name) is None]


def _is_unfinished(entry: os.DirEntry[str]) -> bool:
    """Whether the file is being written: see `Disk`."""
    return _UNFINISHED.fullmatch(entry.name) is not None


def _if_there(look: Callable[[], T]) -> T | None:
    """The result of `look` at a path; None when there is nothing."""
    try:
        return look()
    except OSError as error:
        if error.errno in _NOWHERE:
            return None
        raise
