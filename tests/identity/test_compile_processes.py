"""What compiles may compile one graph after the other, for one caller and where no other tenant finds what it makes."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import httpx2
import pytest

from service.identity.scopes import Scope
from tests.contract.random_graphs import random_graph
from tests.faults.burst import layers
from tests.identity.guarded import WORKER, Guarded
from tests.sandbox.processes import state
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server, children

WAIT_S = 1.0
"""So long one looks for a process at rest before there is none; one is held for several times that."""


def at_rest(server: Server) -> frozenset[int]:
    """The processes that have compiled a graph and are held for further ones of the same caller."""
    return frozenset(pid for pid in children(server.fork_server) if state(pid) == "T")


def rested(server: Server, known: frozenset[int] = frozenset()) -> frozenset[int]:
    """Those that are at rest, as soon as there is one that is not `known` or after WAIT_S."""
    until = time.monotonic() + WAIT_S
    while not (found := at_rest(server)) - known and time.monotonic() < until:
        time.sleep(0.005)
    return found


def body(rows: int) -> bytes:
    """A request that none with other rows answers."""
    return encoded(compile_body(graph(rows=rows)))


def compiled(service: Guarded, key: str, rows: int) -> None:
    answer = service.send(key, "POST", "/compile", body(rows))
    assert answer.json()["programs"][0]["cache"]["status"] == "miss"


def test_a_caller_has_its_graphs_compiled_by_one_process(home: Path) -> None:
    with Guarded(home) as service:
        mine, of_my_tenant, with_more = service.key("t"), service.key("t"), service.key("t", *WORKER, Scope.ADMIN)
        compiled(service, mine, 3)
        first = rested(service)
        assert len(first) == 1
        compiled(service, mine, 5)
        assert rested(service) == first
        found = first
        for rows, other in enumerate((of_my_tenant, with_more, service.key("b")), 6):
            compiled(service, other, rows)
            again = rested(service, found)
            assert len(again - found) == 1, "somebody else's process is not taken"
            found |= again


def test_what_other_tenants_find_is_compiled_by_processes_of_its_own(home: Path) -> None:
    with Guarded(home) as service:
        service.tenant("t", shared=True)
        compiled(service, service.key("t"), 3)
        assert not rested(service)


def test_a_process_compiles_no_other_graph_where_that_is_not_wanted(home: Path) -> None:
    with Server(home, process_per_compile=True) as server:
        assert server.compile(body(3)).status_code == 200
        assert not rested(server)


def test_without_keys_everybody_is_one_caller(home: Path) -> None:
    with Server(home) as server:
        assert server.compile(body(3)).status_code == 200
        (first,) = rested(server)
        assert server.compile(body(5)).status_code == 200
        assert rested(server) == {first}


def test_a_test_hook_is_run_into_by_a_process_of_its_own(home: Path) -> None:
    with Server(home, test_hooks=1) as server:
        assert server.compile(body(3)).status_code == 200
        (first,) = rested(server)
        assert server.compile(body(5), "abort").status_code == 422
        assert at_rest(server) == {first}


@pytest.mark.parametrize("crashes", [1, 2])
def test_a_crash_is_an_attempt_wherever_it_happens(home: Path, crashes: int) -> None:
    with Server(home) as server, ThreadPoolExecutor(1) as pool:
        assert server.compile(body(3)).status_code == 200
        (first,) = rested(server)
        sent = pool.submit(server.compile, encoded(compile_body(json.loads(layers(1).to_json()))))
        killed: list[int] = []
        while len(killed) < crashes:
            for process in set(server.jobs("compile")) - {*killed}:
                os.kill(process, signal.SIGSEGV)
                killed.append(process)
        assert killed[0] == first
        assert sent.result().status_code == (200 if crashes == 1 else 422)
        assert server.log().count("a compile failed") == crashes


def test_what_a_process_has_compiled_before_changes_no_byte(tmp_path: Path) -> None:
    bodies = [encoded(compile_body(random_graph(Random(seed)))) for seed in range(24)]
    digests: list[dict[str, str]] = []
    for number, order in enumerate((1, -1)):
        with Server(tmp_path / str(number), process_per_compile=number == 1) as server:
            answers: list[httpx2.Response] = []
            was_held = False
            for each in bodies[::order]:
                answers.append(server.compile(each))
                was_held = was_held or bool(at_rest(server) if number else rested(server))
            signed = [each.json()["signatures"][0]["record"] for each in answers if each.status_code == 200]
            digests.append({record["action"]: record["program"] for record in signed})
            assert was_held == (number == 0)
    assert digests[0] == digests[1]
    assert len(digests[0]) > len(bodies) // 2
