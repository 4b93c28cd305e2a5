"""A service of a farm whose broker does not answer gives what is stored, also to those who want a job for it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

NOBODY = "amqp://127.0.0.1:1//"
pytestmark = pytest.mark.xdist_group("broker_away")


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """A service of a farm without a broker, on a store that has a program of `graph("exp2")`."""
    home = tmp_path_factory.mktemp("broker_away")
    shared: dict[str, Any] = {"store": home / "store", "keys": home / "keys", "identity": home / "identity"}
    with Server(home / "first", **shared) as first:
        assert first.compile(encoded(compile_body(graph("exp2")))).status_code == 200
    with Server(home / "farm", broker=NOBODY, **shared) as farm:
        yield farm


@pytest.mark.parametrize("prefer", ["wait=30", "respond-async"])
def test_a_job_for_what_is_stored_in_other_words_is_done(farm: Server, prefer: str) -> None:
    answer = farm.post("/compile", encoded(compile_body(graph("exp2", name=f"n{len(prefer)}"))), Prefer=prefer)
    assert (answer.status_code, answer.json()["state"]) == (200, "done")
    (program,) = answer.json()["programs"]
    assert program["cache"] == {"status": "hit", "reason": "same action", "nearest": None, "differs": []}


def test_of_a_batch_what_is_stored_is_done_and_the_rest_refused(farm: Server) -> None:
    requests = [compile_body(graph("exp2", name="batched")), compile_body(graph("sqrt")), compile_body({"schema": 1})]
    answer = farm.post("/jobs:batch", encoded({"requests": requests}))
    assert answer.status_code == 200, answer.text
    stored, missing, wrong = answer.json()["jobs"]
    assert farm.http.get(stored["location"]).json()["state"] == "done"
    assert (missing["status"], missing["error"]["code"]) == (503, "infra.unavailable")
    assert wrong["error"]["code"] == "graph.invalid"


def test_a_job_for_what_is_not_stored_is_refused(farm: Server) -> None:
    answer = farm.post("/compile", encoded(compile_body(graph("sqrt"))), Prefer="respond-async")
    assert (answer.status_code, answer.json()["code"]) == (503, "infra.unavailable")
    assert "broker" in answer.json()["detail"]
