"""The processes of a farm, services and workers, each a process group of its own; and free ports of the loopback."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tests.forked import Forked, Process, suits

_STOP_S = 60.0


class Member:
    """`python -m MODULE` with these KILN_* variables. It prints a line when it is ready; its log is in `log`.

    With `forked` it is forked from a process that has loaded it.
    """

    def __init__(
        self, module: str, arguments: list[str], variables: Mapping[str, str], log: Path, forked: Forked | None = None
    ) -> None:
        self._command = [sys.executable, "-W", "error", "-m", module, *arguments]
        self._forked = forked
        clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
        self._environment = {**clean, **variables}
        self.log = log
        self._process: Process | subprocess.Popen[str] | None = None
        self._is_ready = False

    def start(self) -> None:
        """Start it, without waiting until it is ready."""
        self._is_ready = False
        with self.log.open("ab") as log:
            if self._forked is not None and suits(self._environment):
                self._process = self._forked.start(
                    *self._command[4:],
                    cwd=Path.cwd(),
                    env=self._environment,
                    stderr=log.fileno(),
                    has_session=True,
                )
                return
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
                start_new_session=True,
            )

    def await_ready(self) -> None:
        """Wait until it says that it is ready. RuntimeError with the end of its log when it ends instead."""
        assert self._process is not None
        assert self._process.stdout is not None
        if self._is_ready:
            return
        for line in self._process.stdout:
            if "is ready" in line:
                self._is_ready = True
                return
        raise RuntimeError(f"{' '.join(self._command)} ended with {self._process.wait()}:\n{self._end_of_log()}")

    @property
    def pid(self) -> int:
        """Its process, and its process group."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """SIGKILL to the whole group, and wait."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGKILL)
            self._finish()

    def stop(self) -> int:
        """SIGTERM, as an orchestrator does; the exit status."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
        return self._finish()

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The lines of the log with this event; `at` is their time in seconds since the epoch."""
        found: list[dict[str, Any]] = []
        for text in self.log.read_text(errors="replace").splitlines():
            with suppress(ValueError):
                line: dict[str, Any] = json.loads(text)
                if line.get("event") == event:
                    found.append({**line, "at": datetime.fromisoformat(line["timestamp"]).timestamp()})
        return found

    def _finish(self) -> int:
        assert self._process is not None
        try:
            status = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            status = self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return status

    def _end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]


_OURS: Final = range(20_000, 32_768)
"""Below those that Linux gives connections by itself, which might take one before somebody listens on it."""

_given: set[int] = set()


def free_port() -> int:
    """A port that nobody listens on now, and that was not given before."""
    while True:
        port = secrets.choice(_OURS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port
