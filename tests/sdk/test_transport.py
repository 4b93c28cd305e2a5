from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import pytest
from stamina.instrumentation import get_on_retry_hooks, set_on_retry_hooks

from tensorkiln.errors import (
    DiagnosticError,
    InvalidGraphError,
    LimitExceededError,
    LostWorkerError,
    TensorkilnError,
    UnavailableError,
)
from tensorkiln.transport import Address, Transport

if TYPE_CHECKING:
    from tests.sdk.conftest import ScriptedServer


def transport(server: ScriptedServer, timeout_s: float = 10.0) -> Transport:
    return Transport(lambda: Address(server.url), timeout_s)


def test_the_body_of_an_answer_comes_back_and_the_request_is_sent_once(scripted: ScriptedServer) -> None:
    scripted.answers_with(b'{"a": 1}')
    client = transport(scripted)
    assert client.post("/compile", b"{}") == b'{"a": 1}'
    assert scripted.requests == [("POST", "/compile", b"{}")]
    client.close()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_answer_is_tried_again(scripted: ScriptedServer, status: int) -> None:
    scripted.answers_with(b"busy", status=status)
    scripted.answers_with(b"done")
    client = transport(scripted)
    assert client.get("/x") == b"done"
    assert len(scripted.requests) == 2
    client.close()


@pytest.mark.parametrize("status", [400, 404, 413, 422, 500, 501])
def test_any_other_status_is_final(scripted: ScriptedServer, status: int) -> None:
    scripted.answers_with(b"no", status=status)
    client = transport(scripted)
    with pytest.raises(TensorkilnError):
        client.get("/x")
    assert len(scripted.requests) == 1
    client.close()


def test_a_busy_service_is_given_up_after_five_attempts_with_its_own_error(scripted: ScriptedServer) -> None:
    scripted.refuses_with(503, "infra.lost_worker", "the worker went away", retryable=True)
    client = transport(scripted)
    with pytest.raises(LostWorkerError, match="the worker went away"):
        client.post("/compile", b"{}")
    assert len(scripted.requests) == 5
    client.close()


def test_a_problem_that_says_it_is_not_retryable_is_not_retried(scripted: ScriptedServer) -> None:
    scripted.refuses_with(503, "infra.unavailable", "closed for good", retryable=False)
    client = transport(scripted)
    with pytest.raises(UnavailableError, match="closed for good"):
        client.get("/x")
    assert len(scripted.requests) == 1
    client.close()


@pytest.fixture
def waits() -> Iterator[list[float]]:
    """The seconds that are waited before each further attempt, appended when the wait begins."""
    seconds: list[float] = []
    before = get_on_retry_hooks()
    set_on_retry_hooks([lambda details: seconds.append(details.wait_for)])
    yield seconds
    set_on_retry_hooks(before)


def test_retry_after_in_seconds_is_waited_for(scripted: ScriptedServer, waits: list[float]) -> None:
    scripted.refuses_with(503, "infra.unavailable", "draining", retry_after="1")
    scripted.answers_with(b"done")
    client = transport(scripted)
    assert client.get("/x") == b"done"
    assert waits == [1.0]
    client.close()


def test_retry_after_as_a_date_is_waited_for(scripted: ScriptedServer, waits: list[float]) -> None:
    at = datetime.now(UTC) + timedelta(seconds=2)
    scripted.refuses_with(503, "infra.unavailable", "draining", retry_after=format_datetime(at, usegmt=True))
    scripted.answers_with(b"done")
    client = transport(scripted)
    assert client.get("/x") == b"done"
    assert datetime.now(UTC) >= at.replace(microsecond=0)
    (waited,) = waits
    assert waited <= 2.0
    client.close()


def test_a_retry_after_beyond_the_deadline_fails_without_a_wait(scripted: ScriptedServer, waits: list[float]) -> None:
    scripted.refuses_with(503, "infra.unavailable", "draining", retry_after="3600")
    client = transport(scripted)
    with pytest.raises(UnavailableError, match="draining"):
        client.get("/x")
    assert waits == []
    assert len(scripted.requests) == 1
    client.close()


def test_a_connection_that_is_cut_before_the_answer_is_tried_again(scripted: ScriptedServer) -> None:
    scripted.answers_with(cut=True)
    scripted.answers_with(b"done")
    client = transport(scripted)
    assert client.post("/compile", b"{}") == b"done"
    client.close()


def test_an_unreachable_service_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client = Transport(lambda: Address(f"http://127.0.0.1:{port}"), 10.0)
    with pytest.raises(UnavailableError, match=f"127.0.0.1:{port} cannot be reached for GET /capabilities"):
        client.get("/capabilities")
    client.close()


def test_a_slow_answer_ends_at_the_deadline_and_is_not_tried_again(scripted: ScriptedServer) -> None:
    scripted.answers_with(delay_s=30.0)
    client = transport(scripted, timeout_s=0.5)
    with pytest.raises(UnavailableError, match=r"did not answer GET /x within 0\.5 s"):
        client.get("/x")
    assert len(scripted.requests) == 1
    client.close()


def test_a_problem_comes_back_as_its_own_class_with_pointers_and_details(scripted: ScriptedServer) -> None:
    scripted.refuses_with(
        422, "compile.diagnostic", "tile is odd", pointers=["/nodes/3"], details={"stage": "schedule"}
    )
    scripted.refuses_with(422, "graph.invalid", "no such var", pointers=["/nodes/1/a_var"])
    scripted.refuses_with(
        413, "limit.exceeded", "too many nodes", details={"limit": "nodes", "maximum": 50000, "actual": 50001}
    )
    client = transport(scripted)
    with pytest.raises(DiagnosticError) as diagnostic:
        client.get("/x")
    assert diagnostic.value.pointers == ("/nodes/3",)
    assert diagnostic.value.details == {"stage": "schedule"}
    with pytest.raises(InvalidGraphError, match=r"no such var \(at /nodes/1/a_var\)"):
        client.get("/x")
    with pytest.raises(LimitExceededError) as limit:
        client.get("/x")
    assert limit.value.details["actual"] == 50001
    client.close()


def test_an_unknown_code_keeps_its_message(scripted: ScriptedServer) -> None:
    scripted.refuses_with(402, "billing.overdue", "pay first")
    client = transport(scripted)
    with pytest.raises(TensorkilnError, match="pay first"):
        client.get("/x")
    client.close()


def test_an_answer_of_something_that_is_not_the_service_is_quoted(scripted: ScriptedServer) -> None:
    scripted.answers_with(b"<html>\n<h1>Forbidden</h1>", status=403, headers={"Content-Type": "text/html"})
    client = transport(scripted)
    with pytest.raises(UnavailableError, match=r"answered 403, .*<h1>Forbidden</h1>"):
        client.get("/x")
    client.close()


def test_a_closed_transport_says_so(scripted: ScriptedServer) -> None:
    client = transport(scripted)
    client.close()
    with pytest.raises(UnavailableError, match="closed"):
        client.get("/x")


def test_threads_share_one_transport(scripted: ScriptedServer) -> None:
    scripted.answers_with(json.dumps({"n": 1}).encode())
    client = transport(scripted)
    answers: list[bytes] = []
    threads = [threading.Thread(target=lambda: answers.append(client.get("/x"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [b'{"n": 1}'] * 16
    client.close()
