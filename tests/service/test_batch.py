"""Many requests in one: each is accepted or refused on its own, and what is accepted is done."""

from __future__ import annotations

from typing import Any

import pytest

from tests.identity.guarded import Guarded
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server, cache
from tests.service.test_jobs import ended


def batch(server: Server, requests: list[Any]) -> list[dict[str, Any]]:
    answer = server.post("/jobs:batch", encoded({"requests": requests}))
    assert answer.status_code == 200, answer.text
    return answer.json()["jobs"]


def test_every_request_of_a_batch_is_answered_in_its_place(server: Server) -> None:
    stored = compile_body(graph("exp2", rows=51))
    server.compile(encoded(stored))
    requests: list[Any] = [
        compile_body(graph("exp2", rows=52)),
        {},
        compile_body(graph("exp2", rows=53), ["cpu:aarch64", "cpu:x86-64-v2"]),
        {**compile_body(), "more": 1},
        3,
        None,
        stored,
        compile_body({"schema": 1}),
    ]
    jobs = batch(server, requests)
    assert [job["status"] for job in jobs] == [202, 400, 202, 400, 400, 400, 200, 202]
    assert [job.get("error", {}).get("code") for job in jobs if "id" not in job] == ["request.invalid"] * 4
    done = [ended(server, job["id"]) for job in jobs if "id" in job]
    assert [job["state"] for job in done] == ["done", "done", "done", "failed"]
    assert [len(job["programs"]) for job in done] == [1, 2, 1, 0]
    assert done[3]["error"]["code"] == "graph.invalid"
    assert len({job["id"] for job in done}) == 4


def test_a_request_of_a_batch_is_the_same_request_alone(server: Server) -> None:
    odd = b'{ "target" : "cpu:x86-64-v3",\n"graph":%b }' % encoded(graph("exp2", rows=54, name="n"))
    body = b' {\t"req\\u0075ests" : [ %b , %b]}' % (odd, encoded(compile_body(graph("neg", rows=54))))
    answer = server.post("/jobs:batch", body)
    assert answer.status_code == 200, answer.text
    (job, _) = answer.json()["jobs"]
    assert ended(server, job["id"])["state"] == "done"
    assert cache(server.compile(odd)) == ("hit", "same request")
    (repeated, _) = server.post("/jobs:batch", body).json()["jobs"]
    assert (repeated["status"], repeated["state"]) == (200, "done")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{}", 400, "request.invalid"),
        (b"[]", 400, "request.invalid"),
        (b'{"requests": []}', 400, "request.invalid"),
        (b'{"requests": {}}', 400, "request.invalid"),
        (b'{"requests": [{}], "more": 1}', 400, "request.invalid"),
        (b'{"requests": [{"graph": 1, "graph": 2}]}', 400, "request.invalid"),
        (b'{"requests": [NaN]}', 400, "request.invalid"),
        (b'{"requests": %b}' % (b"[" * 1000 + b"]" * 1000), 413, "limit.exceeded"),
    ],
)
def test_invalid_batches_are_refused_as_a_whole(server: Server, body: bytes, status: int, code: str) -> None:
    answer = server.post("/jobs:batch", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.xdist_group("short")
def test_requests_beyond_the_queue_are_refused_and_those_before_them_done(short: Server) -> None:
    jobs = batch(short, [compile_body(graph("exp2", rows=rows)) for rows in range(1, 17)])
    accepted = [job for job in jobs if job["status"] == 202]
    refused = [job for job in jobs if job["status"] == 503]
    assert len(accepted) >= 2
    assert len(refused) == 16 - len(accepted) > 0
    assert {job["error"]["code"] for job in refused} == {"infra.unavailable"}
    assert {job["error"]["retryable"] for job in refused} == {True}
    assert [ended(short, job["id"])["state"] for job in accepted] == ["done"] * len(accepted)


@pytest.mark.xdist_group("guarded")
def test_a_batch_counts_for_the_limits_of_its_tenant(guarded: Guarded) -> None:
    key = guarded.key("batching")
    body = encoded({"requests": [compile_body(graph("exp2", rows=rows)) for rows in range(1, 13)]})
    jobs = guarded.send(key, "POST", "/jobs:batch", body).json()["jobs"]
    assert {job["status"] for job in jobs} == {202, 429}
    assert {job["error"]["code"] for job in jobs if job["status"] == 429} == {"rate.limited"}
    (first, *_) = jobs
    assert guarded.send(key, "GET", first["location"]).status_code == 200
    assert guarded.send(guarded.key("other"), "GET", first["location"]).status_code == 404
    assert guarded.send(None, "POST", "/jobs:batch", body).status_code == 401
