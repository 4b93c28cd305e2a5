"""Who may have nothing stored adds nothing to the store, whatever it asks for."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from service.identity.scopes import Scope
from tests.identity.guarded import GUARDED, Guarded, refusal
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import HOOK, cache

pytestmark = GUARDED
READERS = [(Scope.CACHE_READ,), (Scope.CACHE_READ, Scope.COMPILE), (Scope.CACHE_READ, Scope.CACHE_WRITE)]


def stored(guarded: Guarded) -> set[Path]:
    """All that is stored but rights, of which a tenant has one for each thing that it may read.

    Taken when no attempt is under way: its record is deleted behind the answer.
    """
    store = guarded.home / "store"

    def is_attempted() -> bool:
        return any("#" in path.name or b'"holder"' in path.read_bytes() for path in (store / "crashes").glob("*/*"))

    for _ in range(1000):
        try:
            if not is_attempted():
                return {path for path in store.rglob("*") if path.is_file() and (store / "access") not in path.parents}
        except FileNotFoundError:  # deleted since it was listed
            continue
        time.sleep(0.01)
    raise AssertionError("an attempt's record is not deleted")


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
    body = encoded(compile_body(graph(name="falls")))
    told = guarded.send(reader, "POST", "/compile", body, **{HOOK: "prepare:segfault"})
    assert refusal(told) == (422, "compile.crashed")
    assert told.json()["details"]["signal"] == "SIGSEGV"
    assert "reproducer" not in told.json()["details"]
    assert stored(guarded) == before
    told = guarded.send(writer, "POST", "/compile", body, **{HOOK: "prepare:segfault"})
    kept = guarded.send(writer, "GET", f"/artifacts/{told.json()['details']['reproducer']}")
    assert kept.content == body
