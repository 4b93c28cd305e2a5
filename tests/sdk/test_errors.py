"""The classes of errors mirror the codes on the wire, also where a problem document is none, or not quite."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.server.serve import create_app
from service.settings import Settings
from tensorkiln import Client
from tensorkiln.errors import (
    AuthError,
    CompileError,
    CrashedError,
    InfrastructureError,
    InvalidGraphError,
    RateLimitedError,
    RequestError,
    TensorkilnError,
    UnavailableError,
    error_from_problem,
)
from tests.sdk.scripted import PROBLEM, ScriptedServer
from tests.sdk.test_jobs import told
from tests.service.bodies import graph

CODE = re.compile(r"`([a-z_]+(?:\.[a-z_]+)?)`: ")


def answered() -> dict[str, set[int]]:
    """The codes that the service may answer with, by its own description, and their statuses."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for operations in create_app(Settings()).openapi()["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                for code in CODE.findall(answer["description"]):
                    found[code].add(int(status))
    return dict(found)


def every(error: type[TensorkilnError] = TensorkilnError) -> Iterator[type[TensorkilnError]]:
    yield error
    for child in error.__subclasses__():
        yield from every(child)


def test_every_code_that_the_service_answers_with_has_its_class() -> None:
    codes = answered()
    assert {"internal", "graph.invalid", "compile.crashed", "rate.limited", "auth.missing"} <= codes.keys()
    for code, statuses in codes.items():
        error = error_from_problem({"code": code, "detail": "No."})
        assert error.code == code
        assert "code" not in error.details
        assert statuses == {error.status} or isinstance(error, RequestError)


@pytest.mark.parametrize("error", [each for each in every() if "code" in vars(each)])
def test_every_class_survives_the_wire(error: type[TensorkilnError]) -> None:
    sent = error("No.", pointers=["/nodes/1"], details={"a": 1})
    read = error_from_problem(sent.to_problem())
    if error.__module__ == TensorkilnError.__module__:
        assert type(read) is error
    assert (read.message, read.pointers, read.details) == ("No.", ("/nodes/1",), {"a": 1})


@pytest.mark.parametrize(
    ("code", "family"),
    [
        ("compile.too_clever", CompileError),
        ("auth.revoked", AuthError),
        ("infra.flooded", InfrastructureError),
        ("billing.overdue", TensorkilnError),
    ],
)
def test_a_code_of_a_later_service_is_an_error_of_its_family(code: str, family: type[TensorkilnError]) -> None:
    error = error_from_problem({"code": code, "detail": "No.", "details": {"a": 1}})
    assert type(error) is family
    assert error.details == {"a": 1, "code": code}


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
