"""Who may have nothing stored adds nothing to the store, whatever it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.identity.caller import Scope
from tests.identity.guarded import GUARDED, Guarded, refusal
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import failing
from tests.service.server import at_rest, cache

pytestmark = GUARDED
READERS = [(Scope.CACHE_READ,), (Scope.CACHE_READ, Scope.COMPILE), (Scope.CACHE_READ, Scope.CACHE_WRITE)]


def stored(guarded: Guarded) -> set[Path]:
    """All that is stored but rights, of which a tenant has one for each thing that it may read."""
    # The index of misses is written behind answers, and the explanation of a miss waits for it.
    guarded.send(guarded.key("explains"), "POST", "/explain", encoded(compile_body(graph("sqrt"))))
    store = guarded.home / "store"
    return {path for path in at_rest(store) if (store / "access") not in path.parents}


@pytest.mark.parametrize("scopes", READERS)
def test_hits_of_a_reader_are_repeated_and_not_stored(guarded: Guarded, scopes: tuple[Scope, ...]) -> None:
    tenant = "adds-" + "-".join(scope.name for scope in scopes)
    writer, reader = guarded.key(tenant), guarded.key(tenant, *scopes)
    guarded.send(writer, "POST", "/compile", encoded(compile_body()))
    before = stored(guarded)
    for name in ("one", "two", "three"):
        body = encoded(compile_body(graph(name=name)))
        answers = [guarded.send(reader, "POST", "/compile", body) for _ in range(3)]
        assert [cache(answer) for answer in answers] == [("hit", "same action"), *[("hit", "same request")] * 2]
    assert stored(guarded) == before
    guarded.send(writer, "POST", "/compile", encoded(compile_body(graph(name="one"))))
    assert len(stored(guarded)) == len(before) + 2


def test_a_readers_crash_is_told_and_leaves_no_reproducer(guarded: Guarded) -> None:
    reader, writer = guarded.key("falls", Scope.CACHE_READ), guarded.key("falls")
    before = stored(guarded)
    body = failing(encoded(compile_body(graph(name="falls"))), "prepare:segfault")
    told = guarded.send(reader, "POST", "/compile", body)
    assert refusal(told) == (422, "compile.crashed")
    assert told.json()["details"]["signal"] == "SIGSEGV"
    assert "reproducer" not in told.json()["details"]
    assert stored(guarded) == before
    told = guarded.send(writer, "POST", "/compile", body)
    kept = guarded.send(writer, "GET", f"/artifacts/{told.json()['details']['reproducer']}")
    assert kept.content == body
