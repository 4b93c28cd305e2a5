"""The files of a store in a directory, as the store's library lists them; what that fails over costs itself alone.

obstore (0.12) lists nothing of a folder in which there is one name that it cannot say, or a link that leads to itself.
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
"""What says of a path that it leads nowhere. With another error nobody knows what is there."""
_UNSAYABLE: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, and what stands for bytes that are not UTF-8."""
_LONGEST: Final = 200
"""Bytes of a name. A file's may have 255, and to a record's are added those of attempts, of claims, of writers."""
_UNFINISHED: Final = re.compile(r"[^#]*#[0-9]+")


def file_names(folder: Path) -> list[str]:
    """The names of the files in a folder, but for those that are too long for a record.

    OSError when it cannot be listed; one that is not there has none.
    """
    return [
        entry.name
        for entry in _entries(folder)
        if len(entry.name.encode()) <= _LONGEST and not _is_unfinished(entry) and _if_there(entry.is_file)
    ]


def files_below(root: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """The paths below `root` of the files in the folder `prefix` and in those there. OSError as in `file_names`.

    A link is what it leads to, but for one to a folder that it is in.
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
    """What a look at a path gives; None when it leads nowhere."""
    try:
        return look()
    except OSError as error:
        if error.errno in _NOWHERE:
            return None
        raise
