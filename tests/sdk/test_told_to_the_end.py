"""The events of a job that is over, and of which nothing is left to tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from service.server.app import create_app
from service.settings import Settings
from tensorkiln import Client
from tensorkiln.embedded import Address
from tensorkiln.immediate import iterate
from tensorkiln.runner import BlockingRunner
from tensorkiln.transport import Transport
from tests.sdk.conftest import Connect
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_jobs import told
from tests.service.bodies import graph

Follow = Callable[..., list[list[str]]]


@pytest.fixture
def follow(connect: Connect) -> Follow:
    """The ids of the events of a job after each of some ids, in turn."""

    def follow(url: str, *after: str) -> list[list[str]]:
        job = connect(url).submit(graph())
        return [[event.id for event in job.events(last)] for last in after]

    return follow


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


def test_a_stream_of_which_nothing_is_left_ends(scripted: ScriptedServer, follow: Follow) -> None:
    scripted.answers_with(told(), status=202)
    scripted.answers_with(b"", status=204)
    assert follow(scripted.url, "1.9") == [[]]
    assert [each.headers.get("last-event-id") for each in scripted.received[1:]] == ["1.9"]


def test_a_stream_that_is_lost_before_its_end_was_seen_is_told_to_the_end(
    scripted: ScriptedServer, follow: Follow
) -> None:
    scripted.answers_with(told(), status=202)
    scripted.tells([("1.1", "queued", {})])
    scripted.answers_with(b"", status=204)
    assert follow(scripted.url, "") == [["1.1"]]


def test_a_job_whose_end_was_seen_is_not_asked_for_more(scripted: ScriptedServer, follow: Follow) -> None:
    scripted.answers_with(told(), status=202)
    scripted.tells([("1.1", "queued", {}), ("1.2", "done", {"state": "done"})])
    assert follow(scripted.url, "", "1.2") == [["1.1", "1.2"], []]
    assert len(scripted.received) == 2
