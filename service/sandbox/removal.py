"""Remove a directory that untrusted code has written to: any depth, any names and modes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

_DIRECTORY: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(path: Path) -> None:
    """Remove a directory and its contents; entries that cannot be removed stay, without an error.

    Links are not followed.
    """
    with suppress(OSError):
        top = _open(str(path))
        try:
            while _clear(top, top):
                pass
        finally:
            os.close(top)
        os.rmdir(path)


def _clear(directory: int, top: int) -> int:
    """Clear `directory`, which is `top` or lies in it; return the number of entries removed or moved.

    Non-empty directories further down are moved up to `top` and removed from there: at any depth, no path is longer
    than one name, and at most two directories are open.
    """
    cleared = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=directory)
                elif directory != top:
                    _lift(entry.name, directory, top)
                else:
                    below = _open(entry.name, top)
                    try:
                        cleared += _clear(below, top)
                    finally:
                        os.close(below)
                    os.rmdir(entry.name, dir_fd=top)
                cleared += 1
    return cleared


def _lift(name: str, directory: int, top: int) -> None:
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError:
        # To be moved, a directory must be writable.
        os.close(_open(name, directory))
        os.rename(name, token_hex(8), src_dir_fd=directory, dst_dir_fd=top)


def _open(name: str, directory: int | None = None) -> int:
    """Open a directory after setting its mode to 0700. OSError when it is not a directory, or not ours."""
    found = os.open(name, os.O_PATH | _DIRECTORY, dir_fd=directory)
    try:
        itself = f"/proc/self/fd/{found}"
        os.chmod(itself, 0o700)
        return os.open(itself, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(found)
