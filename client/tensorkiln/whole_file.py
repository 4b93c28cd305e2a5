"""Files that others see as they were or as they are now, and nothing between."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_MODE = 0o644


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A file that takes the place of the one at `path` when the block ends, and never when it fails.

    After a power failure there is the one or the other. OSError when it cannot be written.
    """
    target = Path(path)
    handle, unfinished = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(unfinished, _MODE)
        os.replace(unfinished, target)
    except BaseException:
        os.unlink(unfinished)
        raise
