"""The files that a command writes because it is told where."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..whole_file import whole_file


@contextmanager
def out_file(path: Path) -> Generator[BinaryIO]:
    """A file to write, which is at `path` when the block ends and as it was before when that fails.

    What is no regular file, such as /dev/stdout, is written to as it is. OSError, which names `path`, when it cannot
    be written.
    """
    try:
        found = path.lstat() if os.path.lexists(path) else None
        if found is None or stat.S_ISREG(found.st_mode):
            with whole_file(path, stat.S_IMODE(found.st_mode) if found is not None else _mode_of_new()) as file:
                yield file
        else:
            with open(path, "wb") as file:
                yield file
    except OSError as error:
        reason = error.strerror or error
        raise OSError(f"{str(path)!r} cannot be written: {reason}; make room, or write elsewhere.") from None


def _mode_of_new() -> int:
    # There is no other way to ask, and another thread's file may be its owner's alone.
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
