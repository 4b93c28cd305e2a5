"""A call ends when its time is over, however much or little its service has to say, and not before."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx2
import pytest

from service.server.serve import create_app
from service.settings import Settings
from tensorkiln import AsyncClient, Client
from tensorkiln.embedded import Address
from tensorkiln.errors import UnavailableError
from tensorkiln.immediate import iterate
from tensorkiln.runner import BlockingRunner
from tensorkiln.transport import Transport
from tests.loopback import Loopback, body_of, reply
from tests.sdk.conftest import Connect
from tests.sdk.scripted import EVENTS, ScriptedServer
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


ATTEMPTS = 3
Follow = Callable[..., list[str]]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.transport.CHECK_S", 0.05)
    monkeypatch.setattr("tensorkiln.transport.STREAM_ATTEMPTS", ATTEMPTS)


@pytest.fixture
def follow(connect: Connect, scripted: ScriptedServer, soon: None) -> Follow:
    """The ids of the events of a job, after one of them, that is followed for so many seconds."""
    scripted.answers_with(told(), status=202)

    def follow(timeout_s: float, last: str = "") -> list[str]:
        return [event.id for event in connect(scripted.url).submit(graph()).events(last, timeout_s=timeout_s)]

    return follow


def test_a_silent_stream_is_followed_until_the_deadline(scripted: ScriptedServer, follow: Follow) -> None:
    scripted.tells([("1.1", "queued", {})], stays_s=60)
    for _ in range(ATTEMPTS * 2):
        scripted.tells([], stays_s=60)
    scripted.tells([("1.2", "done", {"state": "done"})])
    assert follow(60) == ["1.1", "1.2"]
    assert [each.headers.get("last-event-id") for each in scripted.received[2:]] == ["1.1"] * (ATTEMPTS * 2 + 1)


def test_a_stream_that_stays_silent_ends_at_the_deadline(scripted: ScriptedServer, follow: Follow) -> None:
    scripted.tells([], stays_s=60)
    with pytest.raises(UnavailableError, match=r"within 0\.5 s"):
        follow(0.5)


def test_a_stream_that_is_slow_to_open_is_asked_for_again(scripted: ScriptedServer, follow: Follow) -> None:
    for _ in range(ATTEMPTS * 2):
        scripted.answers_with(b"", headers=EVENTS, delay_s=60)
    scripted.tells([("1.1", "done", {"state": "done"})])
    assert follow(60) == ["1.1"]
    assert [each.path for each in scripted.received[1:]] == [f"/jobs/{JOB}/events"] * (ATTEMPTS * 2 + 1)


def test_a_stream_that_breaks_off_again_and_again_is_given_up(scripted: ScriptedServer, follow: Follow) -> None:
    scripted.tells([])
    with pytest.raises(UnavailableError, match="repeatedly closes"):
        follow(60)
    assert len(scripted.received) == 1 + ATTEMPTS


@pytest.mark.usefixtures("soon")
def test_a_compile_with_progress_outlasts_a_stall_and_cancels_nothing(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.answers_with(told(), status=202)
    for _ in range(ATTEMPTS * 2):
        scripted.tells([], stays_s=60)
    scripted.tells([("1.1", "done", {"state": "done"})])
    scripted.answers_with(told("cancelled"))
    seen: list[str] = []
    with Client(scripted.url, cache_dir=tmp_path) as client, pytest.raises(Exception, match="was cancelled"):
        client.compile(graph(), "cpu", on_progress=lambda event: seen.append(event.kind))
    assert seen == ["done"]
    assert {each.method for each in scripted.received[1:]} == {"GET"}


def test_a_service_says_that_nothing_is_left(served: str, tmp_path: Path) -> None:
    with Client(served, cache_dir=tmp_path) as client:
        job = client.submit(graph("sqrt", rows=71), "cpu")
        events = list(job.events())
        path = f"{served}/jobs/{job.id}/events"
        over = httpx2.get(path, headers={"Last-Event-ID": events[-1].id}, verify=False)
        assert (over.status_code, over.content) == (204, b"")
        for last in ("", events[-2].id, "of another attempt"):
            left = httpx2.get(path, headers={"Last-Event-ID": last}, verify=False)
            assert (left.status_code, left.text.count("event: done")) == (200, 1)
        assert list(job.events(events[-2].id)) == events[-1:]
        stream = Transport(BlockingRunner(), lambda: Address(served), 10.0).events(
            f"/jobs/{job.id}/events", events[-1].id
        )
        assert list(iterate(stream)) == []


def test_the_document_has_the_status() -> None:
    responses = create_app(Settings()).openapi()["paths"]["/jobs/{job}/events"]["get"]["responses"]
    assert "Last-Event-ID" in responses["204"]["description"]


@pytest.mark.parametrize("ids", [["1.0"], ["1.0", "1.1"]], ids=["at once", "after an event"])
def test_a_stream_of_which_nothing_is_left_ends(scripted: ScriptedServer, follow: Follow, ids: list[str]) -> None:
    for told_first in ids[1:]:
        scripted.tells([(told_first, "queued", {})])
    scripted.answers_with(b"", status=204)
    assert follow(60, "1.0") == ids[1:]
    assert [each.headers.get("last-event-id") for each in scripted.received[1:]] == ids


def test_a_job_whose_end_was_seen_is_not_asked_for_more(scripted: ScriptedServer, connect: Connect) -> None:
    scripted.answers_with(told(), status=202)
    scripted.tells([("1.1", "queued", {}), ("1.2", "done", {"state": "done"})])
    job = connect(scripted.url).submit(graph())
    assert [[event.id for event in job.events(last)] for last in ("", "1.2")] == [["1.1", "1.2"], []]
    assert len(scripted.received) == 2
