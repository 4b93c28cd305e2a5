"""Streams of events that say nothing for a while, and those that are slow to open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tensorkiln import Client
from tensorkiln.errors import UnavailableError
from tests.sdk.conftest import Connect
from tests.sdk.scripted import EVENTS, ScriptedServer
from tests.sdk.test_jobs import JOB, told
from tests.service.bodies import graph

ATTEMPTS = 3
Follow = Callable[[float], list[str]]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.transport.CHECK_S", 0.2)
    monkeypatch.setattr("tensorkiln.transport.STREAM_ATTEMPTS", ATTEMPTS)


@pytest.fixture
def follow(connect: Connect, scripted: ScriptedServer) -> Follow:
    """The ids of the events of a job that is followed for so many seconds."""
    scripted.answers_with(told(), status=202)
    return lambda timeout_s: [event.id for event in connect(scripted.url).submit(graph()).events(timeout_s=timeout_s)]


def test_a_stream_that_is_open_and_silent_is_followed_until_the_deadline(
    scripted: ScriptedServer, follow: Follow
) -> None:
    scripted.tells([("1.1", "queued", {})], stays_s=60)
    for _ in range(ATTEMPTS * 2):
        scripted.tells([], stays_s=60)
    scripted.tells([("1.2", "done", {"state": "done"})])
    assert follow(60) == ["1.1", "1.2"]
    assert [each.headers.get("last-event-id") for each in scripted.received[2:]] == ["1.1"] * (ATTEMPTS * 2 + 1)


def test_a_stream_that_stays_silent_ends_at_the_deadline(scripted: ScriptedServer, follow: Follow) -> None:
    scripted.tells([], stays_s=60)
    with pytest.raises(UnavailableError, match=r"within 1\.5 s"):
        follow(1.5)


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
