"""A compile that dies is a typed error; a graph that crashes the compiler twice is known; everybody else goes on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from service.engine import answers
from service.engine.answers import KNOWN_S, KnownCrashes
from service.store.attempts import MAX_CRASHES
from tensorkiln.errors import CrashedError, DiagnosticError, TensorkilnError
from tests.clocks import HandClock, going_by
from tests.identity.guarded import Guarded
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import STAGE
from tests.service.server import Server, at_rest, await_end, cache


@pytest.mark.parametrize(
    ("fails", "code", "details"),
    [
        ("segfault", "compile.crashed", {"signal": "SIGSEGV"}),
        ("abort", "compile.crashed", {"signal": "SIGABRT"}),
        ("exit", "compile.crashed", {"signal": None, "exit_status": 3}),
        ("garbage", "compile.crashed", {"signal": None}),
        ("eat_memory", "compile.resource_exhausted", {"signal": None, "resource": "memory", "limit_mib": 256}),
        ("eat_native_memory", "compile.resource_exhausted", {"signal": "SIGABRT", "resource": "memory"}),
        ("big_file", "compile.resource_exhausted", {"signal": "SIGXFSZ", "resource": "file"}),
        ("output", "compile.resource_exhausted", {"signal": None, "resource": "output", "limit_mib": 32}),
    ],
)
def test_a_compile_that_dies_gives_its_error(server: Server, fails: str, code: str, details: dict[str, Any]) -> None:
    body = compile_body(graph("sin", rows=3))
    answer = server.compile(encoded(body), fails)
    problem = answer.json()
    assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json")
    assert (problem["code"], problem["retryable"]) == (code, False)
    assert problem["details"].items() >= {"stage": STAGE, **details}.items()
    reproducer = server.http.get(f"/artifacts/{problem['details']['reproducer']}")
    repeated = server.compile(reproducer.content).json()
    assert repeated["details"]["reproducer"] == problem["details"]["reproducer"]
    assert cache(server.compile(encoded(body)))[0] in ("hit", "miss")


@pytest.mark.xdist_group("pair")
def test_others_are_served_while_a_compile_hangs(patient: Server) -> None:
    body = encoded(compile_body(graph("sqrt", rows=5)))
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(patient.compile, body, "hang")
        patient.at_work()
        assert patient.compile(body).status_code == 200
        assert patient.http.get("/healthz").status_code == 200
        assert not hanging.done()
        _abort_jobs(patient, hanging)
        assert hanging.result().json()["details"]["signal"] == "SIGABRT"


def test_nothing_survives_a_service_that_is_killed(home: Path) -> None:
    server = Server(home, fails=True)
    with ThreadPoolExecutor(1) as pool:
        fork_servers = server.fork_servers
        hanging = pool.submit(server.compile, encoded(compile_body()), "hang")
        child = server.at_work()
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(Exception, match=r"disconnected|reset|closed"):
            hanging.result()
    server.stop()
    for pid in (*fork_servers, child):
        await_end(pid)


@pytest.mark.xdist_group("narrow")
def test_compiles_beyond_the_queue_are_told_to_come_back(narrow: Server) -> None:
    body = encoded(compile_body(graph("sqrt", rows=6)))
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(narrow.compile, body, "hang")
        narrow.at_work()
        refused = narrow.compile(body)
        assert (refused.status_code, refused.json()["code"]) == (503, "infra.unavailable")
        assert refused.json()["retryable"]
        assert refused.headers["Retry-After"] == "1"
        _abort_jobs(narrow, hanging)
        assert hanging.result().status_code == 422
    assert narrow.compile(body).status_code == 200


def _abort_jobs(server: Server, request: Future[Any]) -> None:
    while not request.done():
        for child in server.jobs():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGABRT)
        time.sleep(0.01)


REMEMBERED = CrashedError("It crashed.", pointers=["/nodes/0"], details={"attempts": 2, "cached": True})


@pytest.fixture
def clock() -> Generator[HandClock]:
    with going_by(clock := HandClock(1000.0)):
        yield clock


def asked(known: KnownCrashes, request: str, outcome: TensorkilnError | None = None) -> tuple[str, bool]:
    """What a request comes to whose own way leads to `outcome`: its message, and whether it went that way."""
    went: list[None] = []
    try:
        with known.raising_known(request):
            went.append(None)
            if outcome is not None:
                raise outcome
    except TensorkilnError as error:
        return repr(error.to_problem()), bool(went)
    return "", bool(went)


def test_a_stored_crash_answers_the_same_request_until_it_expires(clock: HandClock) -> None:
    known = KnownCrashes()
    told = repr(REMEMBERED.to_problem())
    assert asked(known, "a", REMEMBERED) == (told, True)
    assert asked(known, "a") == (told, False)
    assert asked(known, "b") == ("", True)
    clock.at += KNOWN_S - 0.1
    assert asked(known, "a") == (told, False), "telling it does not make it younger"
    clock.at += 0.1
    assert asked(known, "a") == ("", True)
    assert asked(known, "a") == ("", True)


@pytest.mark.parametrize(
    "outcome", [CrashedError("It crashed."), DiagnosticError("It cannot be.", details={"cached": True})]
)
def test_nothing_else_is_told_again(outcome: TensorkilnError) -> None:
    known = KnownCrashes()
    for _ in range(2):
        assert asked(known, "a", outcome) == (repr(outcome.to_problem()), True)


def test_old_crashes_are_forgotten(clock: HandClock) -> None:
    known = KnownCrashes()
    asked(known, "a", REMEMBERED)
    clock.at += KNOWN_S
    asked(known, "b", REMEMBERED)
    clock.at -= 1
    assert [asked(known, request)[1] for request in "ab"] == [True, False]


def test_those_that_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_KNOWN", 2)
    known = KnownCrashes()
    for request in "abc":
        asked(known, request, REMEMBERED)
    assert [asked(known, request)[1] for request in "abc"] == [True, False, False]


@pytest.mark.xdist_group("guarded")
def test_it_is_told_without_a_look_at_the_crashes_of_the_store_to_its_caller_alone(guarded: Guarded) -> None:
    mine, other = guarded.key("crashing"), guarded.key("crashing")
    body = encoded(compile_body(graph("exp2", rows=43)))

    def crash(key: str) -> dict[str, Any]:
        response = guarded.send(key, "POST", "/compile", body, fails="always:segfault")
        assert response.status_code == 422
        return response.json()

    first, second = crash(mine), crash(mine)
    assert second == {**first, "details": {**first["details"], "cached": True}}
    store = guarded.home / "store"
    for record in at_rest(store):
        if store / "crashes" in record.parents:
            os.truncate(record, 0)
    assert crash(mine) == second
    assert guarded.send(mine, "GET", f"/artifacts/{first['details']['reproducer']}").status_code == 200
    # The store says nothing of a crash any more, and to another caller nobody else does.
    assert "cached" not in crash(other)["details"]


def attempts(*servers: Server) -> int:
    return sum(server.log().count("a compile failed") for server in servers)


@pytest.mark.xdist_group("pair")
def test_a_graph_that_is_poison_crashes_twice_and_never_again(pair: tuple[Server, Server]) -> None:
    one, two = pair
    body, before = encoded(compile_body(graph("exp2", rows=41))), attempts(one)
    first = one.compile(body, "always:segfault").json()
    assert (first["code"], first["details"]["attempts"]) == ("compile.crashed", MAX_CRASHES)
    assert attempts(one) - before == MAX_CRASHES
    again = one.compile(body, "always:segfault").json()
    assert again == {**first, "details": {**first["details"], "cached": True}}
    assert attempts(one) - before == MAX_CRASHES
    assert one.http.get(f"/artifacts/{first['details']['reproducer']}").status_code == 200
    assert one.compile(body).status_code == 200
    # The other one, as a service after a restart, has the store alone to know it by.
    assert two.compile(body, "always:segfault").json()["details"]["cached"]


@pytest.mark.xdist_group("pair")
def test_results_other_than_crashes_are_not_remembered(patient: Server) -> None:
    body, before = encoded(compile_body(graph("exp2", rows=42))), attempts(patient)
    for count in (1, 2):
        problem = patient.compile(body, "always:refuse").json()
        assert problem["code"] == "compile.diagnostic"
        assert attempts(patient) - before == count
