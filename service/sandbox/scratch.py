"""The scratch directory of a fork server: locked while its service lives, and removed with what tasks have written.

A service holds a lock (flock(2)) on its directory while it lives, however it ends: an unlocked one is abandoned. A
separate process removes the directories of tasks, so that many files delay no task.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, BaseSelector
from typing import Final, NoReturn

from . import confine

NAME: Final = "kiln-remover"
"""The process name that `ps` shows."""


def remove(path: Path) -> None:
    """Remove a directory and its contents; entries that cannot be removed stay, without an error.

    Links are not followed. A task makes no directories: seccomp refuses that, and nothing here is deep.
    """
    with suppress(RecursionError):  # where there is no seccomp
        shutil.rmtree(path, ignore_errors=True)


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


# Differs from the prefix of releases without the lock: one of those may still run.
_PREFIX: Final = "kiln-scratch-"


class Scratch:
    """A new directory at `path`, which no `sweep` removes until this process ends. OSError when it cannot be made."""

    def __init__(self) -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            # A sweep may have removed it before the lock.
            with suppress(BlockingIOError, FileNotFoundError):
                self._lock: int | None = _lock(self.path)
                if self.path.exists():
                    return
                os.close(self._lock)

    def remove(self) -> None:
        """Remove the directory and its contents as far as possible, without an error."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            remove(self.path)
            os.close(lock)


def sweep() -> None:
    """Remove the directories of this user's dead services as far as possible, without an error."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with suppress(OSError):
                    _remove_forsaken(Path(entry.path))


def _remove_forsaken(path: Path) -> None:
    lock = _lock(path)
    try:
        if os.fstat(lock).st_uid == os.getuid():
            remove(path)
    finally:
        os.close(lock)


def _lock(path: Path) -> int:
    """Lock a directory and return its descriptor; BlockingIOError when another process holds the lock."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(directory)
        raise
    return directory
