"""A request whose compile dies is answered with a typed error; the service and everybody else go on."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import STAGE
from tests.service.server import Server, await_end, cache


@pytest.mark.parametrize(
    ("fails", "code", "details"),
    [
        ("segfault", "compile.crashed", {"signal": "SIGSEGV"}),
        ("abort", "compile.crashed", {"signal": "SIGABRT"}),
        ("exit", "compile.crashed", {"signal": None, "exit_status": 3}),
        ("garbage", "compile.crashed", {"signal": None}),
        ("eat_memory", "compile.resource_exhausted", {"signal": None, "resource": "memory", "limit_mib": 256}),
        ("eat_native_memory", "compile.resource_exhausted", {"signal": "SIGABRT", "resource": "memory"}),
        ("big_file", "compile.resource_exhausted", {"signal": "SIGXFSZ", "resource": "file"}),
        ("output", "compile.resource_exhausted", {"signal": None, "resource": "output", "limit_mib": 32}),
    ],
)
def test_a_compile_that_dies_gives_its_error(server: Server, fails: str, code: str, details: dict[str, Any]) -> None:
    body = compile_body(graph("sin", rows=3))
    answer = server.compile(encoded(body), fails)
    problem = answer.json()
    assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json")
    assert (problem["code"], problem["retryable"]) == (code, False)
    assert problem["details"].items() >= {"stage": STAGE, **details}.items()
    reproducer = server.http.get(f"/artifacts/{problem['details']['reproducer']}")
    repeated = server.compile(reproducer.content).json()
    assert repeated["details"]["reproducer"] == problem["details"]["reproducer"]
    assert cache(server.compile(encoded(body)))[0] in ("hit", "miss")


@pytest.mark.xdist_group("pair")
def test_others_are_served_while_a_compile_hangs(patient: Server) -> None:
    body = encoded(compile_body(graph("sqrt", rows=5)))
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(patient.compile, body, "hang")
        patient.at_work()
        assert patient.compile(body).status_code == 200
        assert patient.http.get("/healthz").status_code == 200
        assert not hanging.done()
        _abort_jobs(patient, hanging)
        assert hanging.result().json()["details"]["signal"] == "SIGABRT"


def test_nothing_survives_a_service_that_is_killed(home: Path) -> None:
    server = Server(home, fails=True)
    with ThreadPoolExecutor(1) as pool:
        fork_servers = server.fork_servers
        hanging = pool.submit(server.compile, encoded(compile_body()), "hang")
        child = server.at_work()
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(Exception, match=r"disconnected|reset|closed"):
            hanging.result()
    server.stop()
    for pid in (*fork_servers, child):
        await_end(pid)


@pytest.mark.xdist_group("narrow")
def test_compiles_beyond_the_queue_are_told_to_come_back(narrow: Server) -> None:
    body = encoded(compile_body(graph("sqrt", rows=6)))
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(narrow.compile, body, "hang")
        narrow.at_work()
        refused = narrow.compile(body)
        assert (refused.status_code, refused.json()["code"]) == (503, "infra.unavailable")
        assert refused.json()["retryable"]
        assert refused.headers["Retry-After"] == "1"
        _abort_jobs(narrow, hanging)
        assert hanging.result().status_code == 422
    assert narrow.compile(body).status_code == 200


def _abort_jobs(server: Server, request: Future[Any]) -> None:
    """Abort every job of the service until the request has its answer."""
    while not request.done():
        for child in server.jobs():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGABRT)
        time.sleep(0.01)
