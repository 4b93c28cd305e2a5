"""Streams of events that say nothing for a while, are slow to open, or have nothing left to tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from service.server.app import create_app
from service.settings import Settings
from tensorkiln import Client
from tensorkiln.embedded import Address
from tensorkiln.errors import UnavailableError
from tensorkiln.immediate import iterate
from tensorkiln.runner import BlockingRunner
from tensorkiln.transport import Transport
from tests.sdk.conftest import Connect
from tests.sdk.scripted import EVENTS, ScriptedServer
from tests.sdk.test_jobs import JOB, told
from tests.service.bodies import graph

ATTEMPTS = 3
Follow = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.transport.CHECK_S", 0.05)
    monkeypatch.setattr("tensorkiln.transport.STREAM_ATTEMPTS", ATTEMPTS)


@pytest.fixture
def follow(connect: Connect, scripted: ScriptedServer) -> Follow:
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
