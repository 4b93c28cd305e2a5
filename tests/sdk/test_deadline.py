"""A call ends when its time is over, however much its service has still to say."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import AsyncClient, Client
from tensorkiln.errors import UnavailableError
from tests.loopback import Loopback, body_of, reply
from tests.sdk.conftest import Connect
from tests.sdk.test_jobs import JOB, told
from tests.service.bodies import graph

LONG_S = 60.0
PAUSE_S = 0.05
TIME_S = 0.25
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n"
STREAM = HEAD % b"text/event-stream" + b"\r\n"
EVENT = b"id: 1.1\nevent: stage\ndata: {}\n\n"
DRIPS = {
    "nothing": (b"", b""),
    "head": (HEAD % b"application/json", b"X: a\r\n"),
    "informational": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "body": (HEAD % b"application/json" + b"Content-Length: 100000\r\n\r\n", b" "),
    "body without a length": (HEAD % b"application/json" + b"\r\n{}", b" "),
}
STREAMS = {
    "events": (STREAM, EVENT),
    "comments": (STREAM, b": hi\n\n"),
    "head": (HEAD % b"text/event-stream", b"X: a\r\n"),
}


class Dripping(Loopback):
    """Accepts jobs, and answers any GET with `begin`, and then with `drop` again and again."""

    def __init__(self, begin: bytes, drop: bytes) -> None:
        self.begin, self.drop = begin, drop
        self.received: list[tuple[str, str]] = []
        self._stopping = threading.Event()
        super().__init__()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body_of(request)
        self.received.append((request.command, request.path))
        if request.command != "GET" or request.path == "/keys":
            reply(request, 202 if request.command == "POST" else 200, {}, told("queued"))
            return
        request.close_connection = True
        request.wfile.write(self.begin)
        until = time.monotonic() + LONG_S
        while time.monotonic() < until and not self._stopping.wait(PAUSE_S):
            request.wfile.write(self.drop)

    def close(self) -> None:
        self._stopping.set()
        super().close()


@pytest.fixture
def ended(connect: Connect) -> Callable[..., str]:
    """How a call ends that may take a quarter of a second."""

    def end(url: str, call: Callable[[Any], Any]) -> str:
        began = time.monotonic()
        with pytest.raises(UnavailableError) as error:
            call(connect(url, timeout_s=TIME_S))
        assert time.monotonic() - began < LONG_S / 2
        return error.value.message

    return end


@pytest.mark.parametrize("drip", DRIPS)
def test_an_answer_that_comes_in_drops_ends_in_time(ended: Callable[..., str], drip: str) -> None:
    with Dripping(*DRIPS[drip]) as server:
        assert "did not answer GET /capabilities within 0.25 s" in ended(
            server.url, lambda client: client.capabilities()
        )
        assert server.received == [("GET", "/capabilities")]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_compile_with_endless_events_is_cancelled_in_time(ended: Callable[..., str], stream: str) -> None:
    with Dripping(*STREAMS[stream]) as server:
        said = ended(server.url, lambda client: client.compile(graph(), "cpu", on_progress=lambda _: None))
        assert "within 0.25 s" in said
        assert ("did not end within" in said) == (stream != "head")
        assert server.received == [("POST", "/compile"), ("GET", f"/jobs/{JOB}/events"), ("DELETE", f"/jobs/{JOB}")]


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("call", ["wait", "events"])
def test_followers_of_a_job_get_its_end_before_the_deadline(ended: Callable[..., str], stream: str, call: str) -> None:
    def follow(client: Any) -> None:
        job = client.submit(graph())
        _ = job.wait(TIME_S) if call == "wait" else list(job.events(timeout_s=TIME_S))

    with Dripping(*STREAMS[stream]) as server:
        assert "within 0.25 s" in ended(server.url, follow)
        assert {method for method, _ in server.received} == {"POST", "GET"}


async def test_each_event_may_be_awaited_by_a_task_of_its_own(tmp_path: Path) -> None:
    async def follow(client: AsyncClient) -> None:
        events = (await client.submit(graph())).events(timeout_s=TIME_S)
        while True:
            await asyncio.wait_for(anext(events), LONG_S)

    with Dripping(STREAM, EVENT) as server:
        async with AsyncClient(server.url, cache_dir=tmp_path) as client:
            with pytest.raises(UnavailableError, match=r"within 0\.25 s"):
                await follow(client)


def test_the_time_of_one_call_ends_no_other(tmp_path: Path) -> None:
    with Dripping(STREAM, EVENT) as server, Client(server.url, cache_dir=tmp_path) as client:
        job = client.submit(graph())
        seen: list[str] = []

        def follow() -> None:
            for event in job.events():
                seen.append(event.id)
                if len(seen) == 10:
                    return

        with ThreadPoolExecutor(1) as pool:
            following = pool.submit(follow)
            with pytest.raises(UnavailableError, match=r"within 0\.25 s"):
                job.wait(TIME_S)
            following.result(LONG_S)
        assert len(seen) == 10
        assert len(server.received) == 3
