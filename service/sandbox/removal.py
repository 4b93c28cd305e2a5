"""Remove a directory that untrusted code has written to: any depth, any names and modes.

In a fork server, a separate process does it, so that a slow removal delays no task.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from selectors import EVENT_READ, BaseSelector
from typing import Final, NoReturn

from . import confine

_DIRECTORY: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NAME: Final = "kiln-remover"
"""The process name that `ps` shows."""


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


class Remover:
    """Runs at most one removal process at a time, forked on demand and reaped on an event of `selector`.

    The data of the selector's keys are callables.
    """

    def __init__(self, selector: BaseSelector) -> None:
        self._selector = selector
        self._due: list[Path] = []
        self._process: tuple[int, int] | None = None

    def take(self, directory: Path) -> None:
        """Remove a directory and its contents: at once when it is empty, as most are, else in the removal process."""
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            return
        except OSError:
            self._due.append(directory)
            self._go_on()

    def end(self) -> None:
        self._due.clear()
        self._reap()

    def _go_on(self) -> None:
        if self._process is not None or not self._due:
            return
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            return  # The directories wait for the next one, or for the end of the fork server.
        if pid == 0:
            _live(parent, self._due)
        self._due.clear()
        self._process = pid, os.pidfd_open(pid)
        self._selector.register(self._process[1], EVENT_READ, self._is_done)

    def _is_done(self) -> None:
        self._reap()
        self._go_on()

    def _reap(self) -> None:
        if self._process is not None:
            pid, pidfd = self._process
            self._process = None
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self._selector.unregister(pidfd)
            os.close(pidfd)


def _live(parent: int, directories: Sequence[Path]) -> NoReturn:
    try:
        # An inherited socket kept open would hide the end of the fork server, or of a task, from its peer.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        confine.die_with_parent(parent)
        confine.call_process(NAME)
        confine.give_way()
        for directory in directories:
            remove(directory)
    finally:
        os._exit(0)
