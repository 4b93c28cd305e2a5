"""A private service: one fork server, and requests in the place of its first small graph."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from service.sandbox.spawn import COMPILING
from tensorkiln.embedded import EmbeddedService
from tensorkiln.errors import UnavailableError
from tests.service.bodies import compile_body, encoded, graph
from tests.service.embedded import forked_embedding
from tests.service.server import JSON, children
from tests.service.test_start import environment_in

READY = "tensorkiln is ready"


@contextmanager
def private(home: Path, **settings: str) -> Generator[tuple[subprocess.Popen[str], httpx2.Client]]:
    """A private service that takes requests, and a client."""
    socket = home / "s"
    command = [sys.executable, "-W", "error", "-m", "service", "--private", "--uds", str(socket)]
    pipe, environment = subprocess.PIPE, environment_in(home, KILN_AUTH="off", **settings)
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as service:
        try:
            assert service.stdout is not None
            assert service.stdout.readline().startswith(READY)
            transport = httpx2.HTTPTransport(uds=str(socket))
            with httpx2.Client(transport=transport, base_url="http://private", timeout=60, verify=False) as http:
                yield service, http
        finally:
            service.kill()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def test_it_has_one_fork_server_and_its_first_compile_comes_in_the_place_of_a_small_graph(home: Path) -> None:
    with private(home, KILN_COMPILE_MEMORY_MIB="777") as (service, http):
        (fork_server,) = children(service.pid)
        # It was begun before the settings were known.
        command = Path(f"/proc/{fork_server}/cmdline").read_bytes().split(b"\0")
        assert command[-2:] == [COMPILING.encode(), b""]
        assert http.get("/capabilities").json()["limits"]["compile_memory_mib"] == 777
        answer = http.post("/compile", content=encoded(compile_body(graph("sin"))), headers=JSON)
        assert answer.status_code == 200
        assert 'kind="trial"' not in http.get("/metrics").text
        assert http.get("/readyz").status_code == 200


def test_it_does_not_start_without_a_store_that_takes_what_is_written(home: Path) -> None:
    (home / "store").mkdir()
    (home / "store" / "readiness").write_text("a file in the place of a folder")
    service = EmbeddedService(home, 60.0)
    with forked_embedding():
        for _ in range(2):
            with pytest.raises(
                UnavailableError, match=r"ended with status 1\. It printed: The service cannot start, .*store"
            ):
                service.address()
    service.stop()


def test_one_that_is_only_begun_ends_with_the_others(home: Path) -> None:
    service = EmbeddedService(home, 60.0)
    service.begin()
    pid = service.pid
    assert pid is not None
    service.stop()
    assert service.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
