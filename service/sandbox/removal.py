"""Remove the directories that tasks have written to. A separate process does it, so that many files delay no task."""

from __future__ import annotations

import os
import shutil
import signal
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
