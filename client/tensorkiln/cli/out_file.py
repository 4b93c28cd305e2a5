"""Output files of commands."""

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
    """A file to write, which replaces the one at `path` when the block ends, but not when it fails.

    Anything but a regular file, such as /dev/stdout, is written directly. OSError, naming `path`, when it cannot be
    written.
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
    # The umask can only be read by setting it; set a strict one, for files that other threads create meanwhile.
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
