"""Atomic file replacement: readers see the old contents or the new ones, never a part."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

# Errors of network file systems that do not support fsync on directories.
_NO_SUCH_THING: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


@contextmanager
def whole_file(path: str | os.PathLike[str], mode: int = 0o644) -> Generator[BinaryIO]:
    """A new file that replaces the one at `path` when the block ends, but not when it raises.

    Until then only its owner can read it; then it has `mode`. After a power failure there is the old or the new file;
    once the block has ended, the new one. OSError when it cannot be written.
    """
    target = Path(path)
    handle, unfinished = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(unfinished, mode)
        os.replace(unfinished, target)
    except BaseException:
        os.unlink(unfinished)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable against power failure, if its file system supports it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # one may write in some folders and not look; on Windows folders are not opened
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SUCH_THING:
            raise
    finally:
        os.close(descriptor)
