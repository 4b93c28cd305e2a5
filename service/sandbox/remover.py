"""Removes the files of tasks in a process of its own, so that however many there are, no other task waits for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from selectors import EVENT_READ, BaseSelector
from typing import Final, NoReturn

from . import confine
from .removal import remove

NAME: Final = "kiln-remover"
"""What `ps` shows of the process."""


class Remover:
    """Has at most one process at a time, forked when there is something to remove, and reaps it on an event.

    `selector` has callables as the data of its keys.
    """

    def __init__(self, selector: BaseSelector) -> None:
        self._selector = selector
        self._due: list[Path] = []
        self._process: tuple[int, int] | None = None

    def take(self, directory: Path) -> None:
        """Have a directory removed with all that is in it: here and now when it is empty, as most are."""
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            return
        except OSError:
            self._due.append(directory)
            self._go_on()

    def end(self) -> None:
        """Leave everything that is not removed yet."""
        self._due.clear()
        self._reap()

    def _go_on(self) -> None:
        if self._process is not None or not self._due:
            return
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            return  # What is due waits for what comes next, or for the end of the fork server.
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
        # The sockets among them tell others of the end of the fork server, or of a task.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        confine.die_with_parent(parent)
        confine.call_process(NAME)
        confine.give_way()
        for directory in directories:
            remove(directory)
    finally:
        os._exit(0)
