"""Answers that are larger than any that a service gives are given up while they come."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from tensorkiln import Client
from tensorkiln.errors import LimitExceededError
from tensorkiln.transport import MAX_ANSWER_BYTES
from tests.sdk.conftest import Connect
from tests.sdk.scripted import EVENTS, PROBLEM, ScriptedServer
from tests.sdk.test_jobs import told
from tests.service.bodies import graph

MOST = 3 << 20
CODED = {"Content-Encoding": "gzip"}
Ask = Callable[..., Any]


@pytest.fixture(autouse=True)
def _low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.transport.MAX_ANSWER_BYTES", MOST)


@pytest.fixture
def ask(connect: Connect, scripted: ScriptedServer) -> Ask:
    """Calls a method of a client."""
    return lambda method, *arguments: getattr(connect(scripted.url), method)(*arguments)


def of_size(size: int) -> bytes:
    """A JSON object of so many bytes in gzip, which is a thousandth of them."""
    return gzip.compress(b" " * (size - 2) + b"{}", 1)


def test_an_answer_counts_decoded(scripted: ScriptedServer, ask: Ask) -> None:
    scripted.answers_with(of_size(MOST), headers=CODED)
    assert ask("capabilities") == {}
    scripted.answers = []
    scripted.answers_with(of_size(MOST + 1), headers=CODED)
    with pytest.raises(LimitExceededError, match=f"GET /capabilities .*{MOST}") as refused:
        ask("capabilities")
    assert refused.value.details["limit"] == "answer_bytes"
    assert refused.value.details["maximum"] == MOST < refused.value.details["actual"]
    assert len(scripted.received) == 2


def test_it_is_given_up_before_it_is_there(scripted: ScriptedServer, ask: Ask) -> None:
    scripted.answers_with(of_size(40 * MOST), headers=CODED)
    with pytest.raises(LimitExceededError) as refused:
        ask("validate", graph())
    assert refused.value.details["actual"] <= MOST + (1 << 20)


def test_so_is_one_that_is_not_coded_and_an_error(scripted: ScriptedServer, ask: Ask) -> None:
    scripted.answers_with(b" " * (MOST + 1), status=422, headers=PROBLEM)
    with pytest.raises(LimitExceededError):
        ask("capabilities")


def test_a_stream_that_is_refused_at_length_is_given_up(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.answers_with(told(), status=202)
    scripted.answers_with(of_size(MOST + 1), status=404, headers={**EVENTS, **CODED})
    with Client(scripted.url, cache_dir=tmp_path) as client, pytest.raises(LimitExceededError):
        list(client.submit(graph()).events())


def test_programs_for_several_targets_have_more_room(scripted: ScriptedServer, tmp_path: Path) -> None:
    # The job is read whole, which its programs are not.
    two = gzip.compress(told("done") + b" " * (MOST + 1), 1)
    scripted.answers_with(two, status=202, headers=CODED)
    with Client(scripted.url, cache_dir=tmp_path) as client:
        job = client.submit(graph(), ["cpu", "cpu:aarch64"])
        assert job.status().state == "done"
        with pytest.raises(LimitExceededError, match="fewer targets"):
            client.submit(graph(), "cpu")


def test_an_artifact_may_fill_a_bundle(scripted: ScriptedServer, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.bundle.MAX_ARTIFACT_BYTES", MOST * 2)
    scripted.answers_with(of_size(MOST * 2 + 1), headers=CODED)
    with pytest.raises(LimitExceededError, match=f"{MOST * 2}"):
        ask("artifact", "0" * 64)


def test_the_largest_answer_of_a_compile_fits() -> None:
    assert Settings().compile_output_mib << 20 <= MAX_ANSWER_BYTES
