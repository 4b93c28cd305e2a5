"""Commands that somebody breaks off, and a service that does one thing at a time and hangs: other jobs of it wait."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.service.bodies import compile_body, encoded
from tests.service.server import Server


@contextmanager
def hung_server(home: Path) -> Generator[Server]:
    with Server(home, fails=True, concurrency=1, compile_deadline_s=600) as server:
        hung = server.post("/compile", encoded(compile_body()), fails="hang", Prefer="respond-async")
        job = f"/jobs/{hung.json()['id']}"
        while server.http.get(job).json()["state"] != "running":
            time.sleep(0.02)
        yield server
        server.http.delete(job)


def opened(server: Server) -> frozenset[str]:
    """The jobs of a service that are not over. Of a file that is being written the name has a # in it."""
    names = (path.name for path in (server.home / "store" / "jobs" / "open").glob("*"))
    return frozenset(name for name in names if "#" not in name)


def broken_off(
    command: Sequence[str],
    when: Callable[[], object],
    number: signal.Signals = signal.SIGINT,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The end of a command that gets a signal as soon as `when` is true. It must not end before."""
    with subprocess.Popen(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            while not when():
                assert child.poll() is None, child.communicate()[1]
                time.sleep(0.02)
            child.send_signal(number)
            out, err = child.communicate(timeout=60)
        except BaseException:
            child.kill()
            raise
    return subprocess.CompletedProcess(command, child.returncode, out, err)
