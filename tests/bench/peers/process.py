"""Control of a peer's process: start on some processors, send requests, and kill it after a timeout."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.peers.peers import Peer

ROOT: Final = Path(__file__).parents[3]
LONGEST_REASON: Final = 160

MEMORY: Final = {
    "default": {},
    "warm": {
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
        "MALLOC_TOP_PAD_": str(1 << 28),
    },
}
"""Settings of the allocator. `default`: the C library returns large blocks to the system at once, so that each result
costs page faults. `warm`: freed memory stays in the process, as in a loop that reuses its buffers."""

THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class PeerLost(Exception):
    """The process has ended or did not answer in time; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The number of cores of peers, and the name of their `MEMORY` settings."""

    cores: int
    memory: str

    def environment(self, home: Path) -> dict[str, str]:
        """The environment variables of a peer's process; its caches and temporary files are in `home`."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        places = dict.fromkeys(("HOME", "TMPDIR", "KILN_HOME"), str(home))
        return kept | places | dict.fromkeys(THREADS, str(self.cores)) | MEMORY[self.memory]


class PeerProcess:
    """A running peer. `PeerLost` when it does not start within `limit_s` seconds."""

    def __init__(self, peer: Peer, python: Path, setting: Setting, home: Path, limit_s: float) -> None:
        self.peer = peer
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        command = [str(python), "-m", f"{__package__}.serve", peer.module, str(setting.cores), peer.variant]
        environment = setting.environment(home)
        if peer.environment:
            environment.pop("PYTHONPATH", None)
        processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(processors)[: setting.cores])
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=ROOT,
                env=environment,
            )
        finally:
            os.sched_setaffinity(0, processors)
        self._received = b""
        self.version: str = self._answer(limit_s)["version"]

    def ask(self, limit_s: float, do: str, **question: Any) -> dict[str, Any]:
        """Send a request and return the answer. `PeerLost` after `limit_s` seconds; this kills the process."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **question}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._lost() from None
        return self._answer(limit_s)

    @property
    def is_idle(self) -> bool:
        """Whether all its threads sleep; one that spins, or waits for a processor, does not."""
        states: list[str] = []
        for file in Path(f"/proc/{self._process.pid}/task").glob("*/stat"):
            # A thread may end after it was listed.
            with suppress(FileNotFoundError, ProcessLookupError):
                states.append(file.read_text().rpartition(")")[2].split()[0])
        return "R" not in states

    def close(self) -> None:
        """End the process by closing its standard input; kill it if it does not end within 10 s."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _answer(self, limit_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        end = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not selector.select(max(0.0, end - time.monotonic())):
                    self._process.kill()
                    self.close()
                    raise PeerLost(f"no answer within {limit_s:.0f} s")
                received = os.read(self._process.stdout.fileno(), 1 << 16)
                if not received:
                    raise self._lost()
                self._received += received
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    def _lost(self) -> PeerLost:
        """The error for an ended process: the last line of its standard error, or its exit status."""
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        ended = f"its process ended with {self._process.returncode}"
        self.close()
        return PeerLost(reason(next((line for line in reversed(lines) if line.strip()), ended)))


def reason(text: str) -> str:
    """Convert a text to one line for a table: without paths, without `|`, and shortened."""
    line = re.sub(r"(?:https?:)?(?:/[\w.+~-]+)+/", "", " ".join(text.split())).replace("|", "/")
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"
