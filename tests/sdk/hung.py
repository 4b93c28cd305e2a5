"""A service that does one thing at a time, and has begun one that hangs: other jobs of it wait."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.service.bodies import compile_body, encoded
from tests.service.server import Server


@contextmanager
def hung_server(home: Path) -> Generator[Server]:
    with Server(home, fails=True, concurrency=1, compile_deadline_s=600) as server:
        hung = server.post("/compile", encoded(compile_body()), fails="hang", Prefer="respond-async")
        await_state(server, hung.json()["id"], "running")
        yield server
        server.http.delete(f"/jobs/{hung.json()['id']}")


def await_state(server: Server, job: str, state: str) -> None:
    while server.http.get(f"/jobs/{job}").json()["state"] != state:
        time.sleep(0.02)


def opened(server: Server) -> frozenset[str]:
    """The jobs of a service that are not over. Of a file that is being written the name has a # in it."""
    names = (path.name for path in (server.home / "store" / "jobs" / "open").iterdir())
    return frozenset(name for name in names if "#" not in name)
