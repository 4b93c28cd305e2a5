"""Answers that say they are problem documents and are not, or not quite."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import Client
from tensorkiln.errors import CrashedError, InvalidGraphError, RateLimitedError, TensorkilnError, UnavailableError
from tests.sdk.scripted import PROBLEM, ScriptedServer
from tests.sdk.test_jobs import told
from tests.service.bodies import graph

DEEP = b"[" * 100_000


@pytest.fixture
def client(scripted: ScriptedServer, tmp_path: Path) -> Iterator[Client]:
    with Client(scripted.url, cache_dir=tmp_path) as client:
        yield client


@pytest.mark.parametrize(
    "wrong", [{"pointers": 5}, {"pointers": "/a"}, {"details": [1]}, {"details": "abc"}, {"detail": {"a": 1}}]
)
def test_a_member_of_the_wrong_type_is_ignored(client: Client, scripted: ScriptedServer, wrong: dict[str, Any]) -> None:
    problem = {"code": "graph.invalid", "title": "Wrong", "detail": "No.", **wrong}
    scripted.answers_with(json.dumps(problem).encode(), status=422, headers=PROBLEM)
    with pytest.raises(InvalidGraphError) as refused:
        client.capabilities()
    message = "Wrong" if "detail" in wrong else "No."
    assert (refused.value.message, refused.value.pointers, refused.value.details) == (message, (), {})


@pytest.mark.parametrize(
    "body",
    [
        b'{"code": "x", "details": ' + DEEP,
        DEEP,
        b'{"code": ["graph.invalid"]}',
        b'{"code": null}',
        b'{"code": 5, "details": [1]}',
    ],
    ids=["deep details", "deep", "a list", "null", "a number"],
)
def test_bodies_other_than_problem_documents_are_quoted(client: Client, scripted: ScriptedServer, body: bytes) -> None:
    scripted.answers_with(body, status=422, headers=PROBLEM)
    with pytest.raises(UnavailableError, match="answered 422, not as a tensorkiln service does"):
        client.capabilities()


@pytest.mark.parametrize(
    ("error", "raised"),
    [({"code": "compile.crashed", "pointers": 5, "details": [1]}, CrashedError), ({"code": 5}, TensorkilnError)],
)
def test_the_error_of_a_job_may_be_malformed_too(
    client: Client, scripted: ScriptedServer, error: dict[str, Any], raised: type[TensorkilnError]
) -> None:
    scripted.answers_with(told("failed", error=error), status=202)
    with pytest.raises(raised, match="unknown error"):
        client.submit(graph()).wait()


@pytest.mark.parametrize("stated", ["1e999", "-1e999", "NaN", "true", '"x"', "[]"])
def test_an_invalid_wait_is_one_second(client: Client, scripted: ScriptedServer, stated: str) -> None:
    body = f'{{"code": "rate.limited", "retryable": false, "details": {{"retry_after_s": {stated}}}}}'
    scripted.answers_with(body.encode(), status=429, headers=PROBLEM)
    with pytest.raises(RateLimitedError) as refused:
        client.capabilities()
    assert refused.value.retry_after_s == 1


@pytest.mark.parametrize(
    "header", ["Mon, 01 Jan 99999 00:00:00 GMT", f"Thu, 01 Jan 2026 00:00:00 +{'9' * 30}", "soon", "9" * 400]
)
def test_a_moment_that_is_none_is_not_waited_for(client: Client, scripted: ScriptedServer, header: str) -> None:
    scripted.refuses_with(429, "rate.limited", "enough", retry_after=header, retryable=False)
    with pytest.raises(RateLimitedError, match="enough"):
        client.capabilities()
