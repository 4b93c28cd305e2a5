"""A private service: one fork server, and requests before its first small graph is compiled, or instead of that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from service.sandbox.spawn import COMPILING
from tensorkiln.embedded import EmbeddedService
from tensorkiln.errors import UnavailableError
from tests.sandbox.processes import name
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import failing
from tests.service.server import JSON, children
from tests.service.test_start import environment_in, trials

READY = "tensorkiln is ready"
FAILING = "tests.service.failing"


@contextmanager
def looking(
    home: Path, module: str = "service", **settings: str
) -> Generator[tuple[subprocess.Popen[str], int, httpx2.Client]]:
    """A private service that takes requests, the process of its first small graph, which stands still, and a client."""
    socket = home / "s"
    command = [sys.executable, "-W", "error", "-m", module, "--private", "--uds", str(socket)]
    pipe, environment = subprocess.PIPE, environment_in(home, KILN_AUTH="off", **settings)
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as service:
        try:
            while not (found := trials(service.pid)):
                assert service.poll() is None
                time.sleep(0.005)
            os.kill(found[0], signal.SIGSTOP)
            assert service.stdout is not None
            assert service.stdout.readline().startswith(READY)
            transport = httpx2.HTTPTransport(uds=str(socket))
            with httpx2.Client(transport=transport, base_url="http://private", timeout=60) as http:
                yield service, found[0], http
        finally:
            service.kill()


def compiled(http: httpx2.Client, how: str = "") -> httpx2.Response:
    body = encoded(compile_body(graph("sin")))
    return http.post("/compile", content=failing(body, how) if how else body, headers=JSON)


def await_compiled(service: int) -> None:
    """Until a compile has come to its end, and its process with it."""
    (fork_server,) = children(service)
    while not any(name(job) == "kiln compile" for job in children(fork_server)):
        time.sleep(0.002)
    while any(name(job) == "kiln compile" for job in children(fork_server)):
        time.sleep(0.005)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def test_it_has_one_fork_server_which_was_begun_before_its_settings_were_known(home: Path) -> None:
    with looking(home, KILN_COMPILE_MEMORY_MIB="777") as (service, trial, http):
        os.kill(trial, signal.SIGCONT)
        (fork_server,) = children(service.pid)
        command = Path(f"/proc/{fork_server}/cmdline").read_bytes().split(b"\0")
        assert command[-2:] == [COMPILING.encode(), b""]
        assert http.get("/capabilities").json()["limits"]["compile_memory_mib"] == 777
        assert http.get("/readyz").status_code == 200


def test_a_first_compile_that_ends_well_shows_what_its_small_graph_would(home: Path) -> None:
    with looking(home) as (service, trial, http):
        assert compiled(http).status_code == 200
        for number in (signal.SIGABRT, signal.SIGCONT):
            os.kill(trial, number)
        # That is an end of readiness for now, and none of the service.
        assert compiled(http).json()["programs"][0]["cache"]["status"] == "hit"
        assert service.poll() is None


def test_a_compile_that_fails_is_answered_once_its_small_graph_was_compiled(home: Path) -> None:
    with looking(home, FAILING) as (service, trial, http), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(compiled, http, "refuse")
        await_compiled(service.pid)
        assert not answer.done()
        os.kill(trial, signal.SIGCONT)
        assert answer.result().status_code == 422


def test_it_answers_nothing_and_ends_when_its_small_graph_is_not_compiled(home: Path) -> None:
    with looking(home, FAILING) as (service, trial, http), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(compiled, http, "refuse")
        await_compiled(service.pid)
        for number in (signal.SIGABRT, signal.SIGCONT):
            os.kill(trial, number)
        refused = answer.result()
        assert refused.status_code == 503
        assert "the check canary fails: a small graph is not compiled" in refused.json()["detail"]
        _, told = service.communicate(timeout=120)
    assert service.returncode == 1
    assert told.count("The service cannot start, as the check canary fails") == 1


def test_one_that_could_not_go_on_is_not_started_again_but_told_of(home: Path) -> None:
    service = EmbeddedService(home, 60.0)
    service.begin()
    pid = service.pid
    assert pid is not None
    while not (found := trials(pid)):
        time.sleep(0.005)
    for number in (signal.SIGSTOP, signal.SIGABRT):
        os.kill(found[0], number)
    assert service.address().socket is not None
    os.kill(found[0], signal.SIGCONT)
    while service.pid is not None:
        time.sleep(0.01)
    with pytest.raises(UnavailableError, match=r"ended with status 1\. It printed: The service cannot start, .*canary"):
        service.address()
    # Whoever asks again has another one.
    assert service.address().socket is not None
    assert service.pid not in (None, pid)
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
