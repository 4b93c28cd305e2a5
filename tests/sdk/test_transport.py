from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from tensorkiln.embedded import Address
from tensorkiln.errors import (
    LostWorkerError,
    RateLimitedError,
    TensorkilnError,
    UnavailableError,
)
from tensorkiln.immediate import run
from tensorkiln.retries import ATTEMPTS, BACKOFF_INITIAL_S
from tensorkiln.runner import BlockingRunner, LoopRunner
from tensorkiln.transport import Transport

if TYPE_CHECKING:
    from tests.sdk.scripted import ScriptedServer


class Driven:
    """A transport of one of the clients, driven to the end of each call."""

    def __init__(
        self, url: str, runner: LoopRunner, drive: Callable[[Coroutine[Any, Any, Any]], Any], timeout_s: float
    ):
        self._transport = Transport(runner, lambda: Address(url), timeout_s)
        self._drive = drive

    def get(self, path: str) -> bytes:
        return self._drive(self._transport.get(path))

    def post(self, path: str, body: bytes) -> bytes:
        return self._drive(self._transport.post(path, body))

    def close(self) -> None:
        self._drive(self._transport.close())


Connect = Callable[..., Driven]


@pytest.fixture(params=["blocking", "async"])
def transport(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Makes a transport to a server, or to a URL; each test is run for both clients."""
    made: list[Driven] = []
    with asyncio.Runner() as loop:

        def connect(server: ScriptedServer | str, timeout_s: float = 10.0) -> Driven:
            url = server if isinstance(server, str) else server.url
            is_async = request.param == "async"
            made.append(
                Driven(url, LoopRunner(), loop.run, timeout_s)
                if is_async
                else Driven(url, BlockingRunner(), run, timeout_s)
            )
            return made[-1]

        yield connect
        for each in made:
            each.close()


def test_the_body_of_an_answer_comes_back_and_the_request_is_sent_once(
    transport: Connect, scripted: ScriptedServer
) -> None:
    scripted.answers_with(b'{"a": 1}')
    client = transport(scripted)
    assert client.post("/compile", b"{}") == b'{"a": 1}'
    assert scripted.requests == [("POST", "/compile", b"{}")]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_answer_is_tried_again(transport: Connect, scripted: ScriptedServer, status: int) -> None:
    scripted.answers_with(b"busy", status=status)
    scripted.answers_with(b"done")
    client = transport(scripted)
    assert client.get("/x") == b"done"
    assert len(scripted.requests) == 2


@pytest.mark.parametrize("status", [400, 404, 413, 422, 500, 501])
def test_any_other_status_is_final(transport: Connect, scripted: ScriptedServer, status: int) -> None:
    scripted.answers_with(b"no", status=status)
    client = transport(scripted)
    with pytest.raises(TensorkilnError):
        client.get("/x")
    assert len(scripted.requests) == 1


def test_a_busy_service_is_given_up_after_five_attempts_with_its_own_error(
    transport: Connect, scripted: ScriptedServer
) -> None:
    scripted.refuses_with(503, "infra.lost_worker", "the worker went away", retryable=True)
    client = transport(scripted)
    with pytest.raises(LostWorkerError, match="the worker went away"):
        client.post("/compile", b"{}")
    assert len(scripted.requests) == 5


def test_a_problem_that_says_it_is_not_retryable_is_not_retried(transport: Connect, scripted: ScriptedServer) -> None:
    scripted.refuses_with(503, "infra.unavailable", "closed for good", retryable=False)
    client = transport(scripted)
    with pytest.raises(UnavailableError, match="closed for good"):
        client.get("/x")
    assert len(scripted.requests) == 1


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that are waited before each further attempt, appended when the wait begins."""
    seconds: list[float] = []

    sleep = asyncio.sleep

    def noting(wait_s: float) -> Coroutine[Any, Any, None]:
        seconds.append(wait_s)
        return sleep(wait_s)

    monkeypatch.setattr(asyncio, "sleep", noting)
    return seconds


def test_retry_after_in_seconds_is_waited_for(transport: Connect, scripted: ScriptedServer, waits: list[float]) -> None:
    scripted.refuses_with(503, "infra.unavailable", "draining", retry_after="1")
    scripted.answers_with(b"done")
    client = transport(scripted)
    assert client.get("/x") == b"done"
    assert 1.0 <= waits[0] <= 1.0 + BACKOFF_INITIAL_S
    assert len(waits) == 1


def test_retry_after_as_a_date_is_waited_for(transport: Connect, scripted: ScriptedServer, waits: list[float]) -> None:
    at = datetime.now(UTC) + timedelta(seconds=2)
    scripted.refuses_with(503, "infra.unavailable", "draining", retry_after=format_datetime(at, usegmt=True))
    scripted.answers_with(b"done")
    client = transport(scripted)
    assert client.get("/x") == b"done"
    assert datetime.now(UTC) >= at.replace(microsecond=0)
    (waited,) = waits
    assert waited <= 2.0 + BACKOFF_INITIAL_S


def test_a_retry_after_beyond_the_deadline_fails_without_a_wait(
    transport: Connect, scripted: ScriptedServer, waits: list[float]
) -> None:
    scripted.refuses_with(503, "infra.unavailable", "draining", retry_after="3600")
    client = transport(scripted)
    with pytest.raises(UnavailableError, match="draining"):
        client.get("/x")
    assert waits == []
    assert len(scripted.requests) == 1


def test_a_connection_that_is_cut_before_the_answer_is_tried_again(
    transport: Connect, scripted: ScriptedServer
) -> None:
    scripted.answers_with(cut=True)
    scripted.answers_with(b"done")
    client = transport(scripted)
    assert client.post("/compile", b"{}") == b"done"


def test_an_unreachable_service_is_named(transport: Connect) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # nobody else listens on it meanwhile
        port = unheard.getsockname()[1]
        client = transport(f"http://127.0.0.1:{port}")
        with pytest.raises(UnavailableError, match=f"127.0.0.1:{port} cannot be reached for GET /capabilities"):
            client.get("/capabilities")


def test_a_slow_answer_ends_at_the_deadline_and_is_not_tried_again(
    transport: Connect, scripted: ScriptedServer
) -> None:
    scripted.answers_with(delay_s=30.0)
    client = transport(scripted, timeout_s=0.5)
    with pytest.raises(UnavailableError, match=r"did not answer GET /x within 0\.5 s"):
        client.get("/x")
    assert len(scripted.requests) == 1


def test_an_answer_of_something_that_is_not_the_service_is_quoted(transport: Connect, scripted: ScriptedServer) -> None:
    scripted.answers_with(b"<html>\n<h1>Forbidden</h1>", status=403, headers={"Content-Type": "text/html"})
    client = transport(scripted)
    with pytest.raises(UnavailableError, match=r"answered 403, .*<h1>Forbidden</h1>"):
        client.get("/x")


def test_a_closed_transport_says_so(transport: Connect, scripted: ScriptedServer) -> None:
    client = transport(scripted)
    client.close()
    with pytest.raises(UnavailableError, match="closed"):
        client.get("/x")


def test_tasks_share_one_transport_and_so_do_loops_one_after_the_other(scripted: ScriptedServer) -> None:
    # Connections that are kept would belong to a loop that is gone.
    scripted.answers_with(b"{}", headers={"Connection": "close"})
    client = Transport(LoopRunner(), lambda: Address(scripted.url), 10.0)

    async def several() -> None:
        assert await asyncio.gather(*(client.get("/x") for _ in range(16))) == [b"{}"] * 16

    asyncio.run(several())
    asyncio.run(several())


def test_a_service_that_says_when_to_come_again_is_asked_until_the_deadline(
    transport: Connect, scripted: ScriptedServer
) -> None:
    for _ in range(ATTEMPTS + 2):
        scripted.refuses_with(503, "infra.unavailable", "busy", retry_after="0")
    scripted.answers_with(b"done")
    assert transport(scripted).get("/x") == b"done"
    assert len(scripted.requests) == ATTEMPTS + 3


def test_a_service_that_stays_busy_is_given_up_at_the_deadline(transport: Connect, scripted: ScriptedServer) -> None:
    scripted.refuses_with(429, "rate.limited", "enough", retry_after="1")
    with pytest.raises(RateLimitedError, match="enough"):
        transport(scripted, timeout_s=3.0).get("/x")
    assert 2 <= len(scripted.requests) <= 3
