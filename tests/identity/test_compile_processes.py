"""What compiles may compile one graph after the other, for one caller and where no other tenant finds what it makes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from random import Random

import httpx2
import pytest

from service.identity.scopes import Scope
from tests.contract.random_graphs import random_graph
from tests.faults.burst import layers
from tests.identity.guarded import GUARDED, UNGUARDED, WORKER, Guarded
from tests.identity.resting import at_rest, await_none_at_rest
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

ROWS = count(100)
"""What makes one graph another."""
WAIT_S = 1.0
"""So long one looks for a process at rest before there is none; one is held for several times that."""


def rested(server: Server, known: frozenset[int] = frozenset()) -> frozenset[int]:
    """Those that are at rest, as soon as there is one that is not `known` or after WAIT_S."""
    until = time.monotonic() + WAIT_S
    while not (found := at_rest(server.fork_server)) - known and time.monotonic() < until:
        time.sleep(0.005)
    return found


def body(rows: int) -> bytes:
    """A request that none with other rows answers."""
    return encoded(compile_body(graph(rows=rows)))


def compiled(service: Guarded, key: str) -> None:
    answer = service.send(key, "POST", "/compile", body(next(ROWS)))
    assert answer.json()["programs"][0]["cache"]["status"] == "miss"


def compiled_for_all(service: Server) -> None:
    assert service.compile(body(next(ROWS))).status_code == 200


def rests_after(server: Server, compile_one: Callable[[], None]) -> int:
    """The process, none of those that rest already, that has compiled a graph and rests.

    One that is slow to say that it is done, as on a busy machine, is ended: then there is another graph.
    """
    while True:
        known = at_rest(server.fork_server)
        compile_one()
        if new := rested(server, known) - known:
            (process,) = new
            return process


def is_taken_again(server: Server, compile_one: Callable[[], None]) -> bool:
    """Whether the only process that rests compiles the next graph, too, and no other does."""
    while True:
        first = rests_after(server, compile_one)
        compile_one()
        if again := rested(server):
            return again | rested(server, again) == frozenset({first})
        await_none_at_rest(server)


@GUARDED
def test_a_caller_has_its_graphs_compiled_by_one_process(guarded: Guarded) -> None:
    mine, of_my_tenant, with_more = guarded.key("c1"), guarded.key("c1"), guarded.key("c1", *WORKER, Scope.ADMIN)
    await_none_at_rest(guarded)
    assert is_taken_again(guarded, partial(compiled, guarded, mine))
    for other in (of_my_tenant, with_more, guarded.key("c2")):
        assert at_rest(guarded.fork_server), "somebody else's process, which is not taken"
        rests_after(guarded, partial(compiled, guarded, other))


@GUARDED
def test_what_other_tenants_find_is_compiled_by_processes_of_its_own(guarded: Guarded) -> None:
    guarded.tenant("c3", shared=True)
    await_none_at_rest(guarded)
    compiled(guarded, guarded.key("c3"))
    assert not rested(guarded)


@pytest.fixture(scope="module")
def one_each(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose processes compile one graph each."""
    with Server(tmp_path_factory.mktemp("one"), process_per_compile=True) as running:
        yield running


@UNGUARDED
def test_a_process_compiles_no_other_graph_where_that_is_not_wanted(one_each: Server) -> None:
    compiled_for_all(one_each)
    assert not rested(one_each)


@UNGUARDED
def test_without_keys_everybody_is_one_caller(unguarded: Server) -> None:
    await_none_at_rest(unguarded)
    assert is_taken_again(unguarded, partial(compiled_for_all, unguarded))


@UNGUARDED
def test_a_test_hook_is_run_into_by_a_process_of_its_own(unguarded: Server) -> None:
    await_none_at_rest(unguarded)
    first = rests_after(unguarded, partial(compiled_for_all, unguarded))
    assert unguarded.compile(body(next(ROWS)), "abort").status_code == 422
    assert at_rest(unguarded.fork_server) == {first}


@UNGUARDED
@pytest.mark.parametrize("crashes", [1, 2])
def test_a_crash_is_an_attempt_wherever_it_happens(unguarded: Server, crashes: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        await_none_at_rest(unguarded)
        logged = len(unguarded.log())
        first = rests_after(unguarded, partial(compiled_for_all, unguarded))
        sent = pool.submit(unguarded.compile, encoded(compile_body(json.loads(layers(crashes).to_json()))))
        killed: list[int] = []
        while len(killed) < crashes:
            for process in set(unguarded.jobs("compile")) - {*killed}:
                os.kill(process, signal.SIGSEGV)
                killed.append(process)
        assert killed[0] == first
        assert sent.result().status_code == (200 if crashes == 1 else 422)
        assert unguarded.log()[logged:].count("a compile failed") == crashes


@UNGUARDED
def test_what_a_process_has_compiled_before_changes_no_byte(unguarded: Server, one_each: Server) -> None:
    bodies = [encoded(compile_body(random_graph(Random(seed)))) for seed in range(24)]
    digests: list[dict[str, str]] = []
    await_none_at_rest(unguarded)
    for server, order in ((unguarded, 1), (one_each, -1)):
        answers: list[httpx2.Response] = []
        was_held = False
        for each in bodies[::order]:
            answers.append(server.compile(each))
            was_held = was_held or bool(at_rest(server.fork_server) if server is one_each else rested(server))
        signed = [each.json()["signatures"][0]["record"] for each in answers if each.status_code == 200]
        digests.append({record["action"]: record["program"] for record in signed})
        assert was_held == (server is unguarded)
    assert digests[0] == digests[1]
    assert len(digests[0]) > len(bodies) // 2
