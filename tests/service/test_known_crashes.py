"""A graph that crashes the compiler is compiled twice. Then the crash is known, in the store and to each caller."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from service.engine import answers
from service.engine.answers import KNOWN_S, KnownCrashes
from service.store.attempts import MAX_CRASHES
from tensorkiln.errors import CrashedError, DiagnosticError, TensorkilnError
from tests.clocks import HandClock, going_by
from tests.identity.guarded import Guarded
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server
from tests.service.stored import at_rest

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
    """How many compiles have failed so far, by the logs."""
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
