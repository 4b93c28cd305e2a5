"""Lists the files of a store in a directory as obstore does, but skips single entries on which obstore fails.

obstore (0.12) lists nothing of a folder with one name of unusual characters, or with a link that leads to itself.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
_Identity: TypeAlias = tuple[int, int]

_NOWHERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""Errors which say that there is nothing at a path. Other errors do not say what is there."""
_UNSAYABLE: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, and the surrogates of bytes that are not UTF-8."""
_LONGEST: Final = 200
"""Maximum bytes of a record's name. A file's may have 255: attempts, claims and writers add suffixes."""
_UNFINISHED: Final = re.compile(r"[^#]*#[0-9]+")


def file_names(folder: Path) -> list[str]:
    """The names of the files in a folder, except those that are too long for a record.

    Empty for a missing folder. OSError when it cannot be listed.
    """
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
            if status is not None and S_ISDIR(status.st_mode):
                folders.append((inner, above | {itself}))
            elif status is not None and S_ISREG(status.st_mode) and not _is_unfinished(entry):
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
