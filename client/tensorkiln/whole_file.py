"""Files that others see as they were or as they are now, and nothing between."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

# What some file systems of a network say.
_NO_SUCH_THING: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


@contextmanager
def whole_file(path: str | os.PathLike[str], mode: int = 0o644) -> Generator[BinaryIO]:
    """A file that takes the place of the one at `path` when the block ends, and never when it fails.

    It is its owner's alone until then, and has this `mode` from then on. After a power failure there is the one or the
    other, and the new one if that came later. OSError when it cannot be written.
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
    """Have the names in a folder outlast a power failure, as far as its file system offers that."""
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
