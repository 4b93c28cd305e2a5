"""A service that is asked to stop: it says so, serves whoever has not heard, finishes what it has, and ends with 0."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.sandbox.processes import alive
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import failing
from tests.service.server import JSON, Server, cache, go_on
from tests.service.test_connections import connected, said

NOTICE_S = 6.0
"""Long enough for a compile on a machine that runs other tests."""


def fresh(server: Server, method: str, path: str, body: bytes | None = None, **headers: str) -> httpx2.Response:
    """The answer to a request over a connection of its own."""
    return httpx2.request(
        method, server.url + path, content=body, headers={**JSON, **headers}, timeout=30, verify=False
    )


def accepts(server: Server) -> bool:
    try:
        return fresh(server, "GET", "/healthz").status_code == 200
    except httpx2.TransportError:
        return False


def test_during_the_notice_readiness_is_gone_and_everybody_is_served(home: Path) -> None:
    with Server(home, shutdown_notice_s=NOTICE_S) as server:
        assert fresh(server, "GET", "/readyz").status_code == 200
        os.kill(server.pid, signal.SIGTERM)
        begin = time.monotonic()
        while (ready := fresh(server, "GET", "/readyz")).status_code == 200:
            assert time.monotonic() - begin < NOTICE_S / 2
        assert (ready.status_code, ready.json()["code"], ready.json()["retryable"]) == (503, "infra.unavailable", True)
        assert "Retry-After" in ready.headers
        assert fresh(server, "GET", "/healthz").status_code == 200
        assert fresh(server, "POST", "/compile", encoded(compile_body())).status_code == 200
        later = fresh(server, "POST", "/compile", encoded(compile_body(graph("sqrt"))), Prefer="respond-async")
        assert later.status_code in (200, 202)
        assert server.process.wait(60) == 0
        assert time.monotonic() - begin > NOTICE_S - 0.5
        with pytest.raises(httpx2.ConnectError):
            fresh(server, "GET", "/readyz")
    with Server(home) as again:
        job = again.http.get(f"/jobs/{later.json()['id']}/events")
        assert b'"state":"done"' in job.content.replace(b" ", b"")


def test_without_a_notice_nobody_new_is_accepted_and_what_is_under_way_is_finished(home: Path) -> None:
    body = failing(encoded(compile_body()), "stop")
    with Server(home, fails=True) as server, ThreadPoolExecutor() as pool:
        fork_servers, under_way = server.fork_servers, pool.submit(server.compile, body)
        compiling = server.stopped()
        os.kill(server.pid, signal.SIGTERM)
        begin = time.monotonic()
        while accepts(server):
            assert time.monotonic() - begin < 10
            time.sleep(0.05)
        go_on(compiling, under_way)
        assert under_way.result().status_code == 200
        assert server.stop() == 0
        assert "defect" not in server.log()
        assert not any(map(alive, fork_servers))
    with Server(home) as again:
        assert cache(again.compile(body)) == ("hit", "same request")


def is_told_to_come_again(answer: httpx2.Response) -> bool:
    assert answer.headers["Content-Type"] == "application/problem+json"
    found = (answer.status_code, answer.json()["code"], answer.json()["retryable"])
    return found == (503, "infra.unavailable", True) and "Retry-After" in answer.headers


def test_a_second_interrupt_ends_the_grace_and_whoever_waits_is_told_to_come_again(home: Path) -> None:
    with Server(home, fails=True, compile_deadline_s=60) as server, ThreadPoolExecutor() as pool:
        under_way = pool.submit(server.compile, encoded(compile_body()), "hang")
        server.at_work()
        os.kill(server.pid, signal.SIGINT)
        while accepts(server):
            time.sleep(0.02)
        os.kill(server.pid, signal.SIGINT)
        assert is_told_to_come_again(under_way.result(30))
        assert server.process.wait(30) == 130
        assert "Traceback" not in server.log()


def until_waiting(server: Server, requests: int) -> None:
    while f'kiln_queue_depth{{lane="short_jobs"}} {requests:.1f}' not in server.http.get("/metrics").text:
        time.sleep(0.01)


def test_requests_beyond_the_grace_period_get_retry_after(home: Path) -> None:
    settings: dict[str, Any] = {"concurrency": 1, "compile_deadline_s": 60, "shutdown_grace_s": 1}
    with (
        Server(home, fails=True, **settings) as server,
        ThreadPoolExecutor() as pool,
        ExitStack() as held,
    ):

        def post(path: str, body: bytes) -> Future[httpx2.Response]:
            return pool.submit(fresh, server, "POST", path, body)

        compiling = post("/compile", failing(encoded(compile_body()), "hang"))
        server.at_work()
        # Two of the same bytes would be read once.
        hanging = (failing(encoded(compile_body(graph(rows=rows))), "prepare:hang") for rows in (3, 4))
        reading = [post("/compile", body) for body in hanging]
        until_waiting(server, 1)
        batch = post("/jobs:batch", encoded({"requests": [compile_body()]}))
        until_waiting(server, 2)
        sending = {
            path: held.enter_context(connected(server)) for path in ("/compile", "/jobs:batch", "/explain", "/validate")
        }
        for path, connection in sending.items():
            connection.sendall(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n".encode()
            )
            assert connection.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(b"{")
        begin = time.monotonic()
        assert server.process.poll() is None
        os.kill(server.pid, signal.SIGTERM)
        for path, connection in sending.items():
            head, _, body = said(connection).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 "), (path, head)
            assert b"application/problem+json" in head, path
            assert b"retry-after: " in head.lower(), path
            assert b'"infra.unavailable"' in body, path
        assert all(is_told_to_come_again(each.result(30)) for each in (compiling, *reading, batch))
        assert server.process.wait(30) == 0
        assert 0.9 < time.monotonic() - begin < 20
        assert "Traceback" not in server.log()
        assert "defect" not in server.log()
