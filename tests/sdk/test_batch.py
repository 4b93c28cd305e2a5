"""Many graphs at once: as they come, in bounds, one failure at a time."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import AsyncClient, Client
from tensorkiln.errors import InvalidGraphError, RequestError
from tests.sdk.hung import broken_off, opened
from tests.service.bodies import graph
from tests.service.server import Server


def broken() -> dict[str, Any]:
    wire = graph()
    wire["nodes"][1]["in_var"] = 999
    return wire


def test_every_graph_comes_back_for_every_target_and_a_failure_ends_no_other(served: str, tmp_path: Path) -> None:
    wires = [graph("sqrt", rows=70), broken(), graph("sqrt", rows=71), "not JSON"]
    with Client(served, cache_dir=tmp_path) as client:
        found = list(client.compile_many(wires, ["cpu:x86-64-v2", "cpu:x86-64-v3"], concurrency=3))
        by_place = {(each.graph, each.target): each for each in found}
        assert by_place.keys() == {(graph, target) for graph in range(4) for target in range(2)}
        for (place, target), each in by_place.items():
            if place in (1, 3):
                assert isinstance(each.error, InvalidGraphError)
                assert each.compiled is None
            else:
                assert each.error is None
                assert each.compiled is not None
                assert each.compiled.target.cpu == ("x86-64-v2", "x86-64-v3")[target]
                assert each.run_ms is not None
                record = client.signature(each.compiled.digest).record
                assert record.action == each.compiled.digest
        assert (best := by_place[0, 1].compiled) is not None
        assert client.load(best).compiled.digest


@pytest.mark.parametrize("failure", [KeyError("weights"), OSError("no such disk"), StopIteration(), RuntimeError()])
def test_a_function_that_fails_is_an_outcome_and_ends_no_other(served: str, tmp_path: Path, failure: Exception) -> None:
    def fail() -> dict[str, Any]:
        raise failure

    with Client(served, cache_dir=tmp_path) as client:
        found = list(client.compile_many([fail, graph("sqrt", rows=70)], ["cpu"], concurrency=1))
    assert [each.graph for each in found] == [0, 1]
    assert isinstance(found[0].error, RequestError)
    assert type(failure).__name__ in found[0].error.message
    assert found[0].error.__cause__ is failure
    assert found[1].error is None


def test_results_come_as_they_are_there_and_graphs_are_read_when_it_is_their_turn(served: str, tmp_path: Path) -> None:
    read: list[int] = []
    threads: set[int] = set()

    def later(place: int) -> Any:
        def give() -> dict[str, Any]:
            read.append(place)
            threads.add(threading.get_ident())
            return graph("sqrt", rows=72 + place)

        return give

    with Client(served, cache_dir=tmp_path) as client:
        results = client.compile_many(map(later, range(6)), ["cpu"], concurrency=2)
        next(results)
        assert len(read) <= 2
        assert sorted(each.graph for each in results) != []
    assert sorted(read) == list(range(6))
    assert threading.get_ident() not in threads


async def test_many_are_compiled_in_a_loop(served: str, tmp_path: Path) -> None:
    wires = [graph("sqrt", rows=rows) for rows in range(80, 84)]
    async with AsyncClient(served, cache_dir=tmp_path) as client:
        found = {each.graph async for each in client.compile_many(wires, ["cpu"]) if each.error is None}
    assert found == {0, 1, 2, 3}


def test_kept_programs_need_no_service(served: str, tmp_path: Path) -> None:
    wires = [graph("sqrt", rows=80), graph("sqrt", rows=99)]
    with Client(served, cache_dir=tmp_path) as client:
        client.compile_for(wires[0], ["cpu"])
    with Client(served, cache_dir=tmp_path, offline=True) as client:
        found = sorted(client.compile_many(wires, ["cpu"]), key=lambda each: each.graph)
    assert [each.error.code if each.error else None for each in found] == [None, "request.not_found"]


@pytest.mark.parametrize("concurrency", [0, 65])
def test_a_concurrency_out_of_bounds_and_unknown_targets_are_refused(tmp_path: Path, concurrency: int) -> None:
    with Client("http://127.0.0.1:1", cache_dir=tmp_path) as client:
        with pytest.raises(RequestError, match="1 to 64"):
            next(client.compile_many([graph()], ["cpu"], concurrency=concurrency))
        with pytest.raises(RequestError, match="cpu:pentium"):
            next(client.compile_many([graph()], ["cpu:pentium"]))
        with pytest.raises(RequestError, match="at least one target"):
            next(client.compile_many([graph()], []))


def test_closing_the_results_cancels_what_is_under_way(busy: Server, tmp_path: Path) -> None:
    before = opened(busy)
    wires = ["not JSON", *(graph("sqrt", rows=rows) for rows in range(90, 96))]
    with Client(busy.url, cache_dir=tmp_path) as client:
        with closing(client.compile_many(wires, ["cpu"], concurrency=3)) as results:
            assert next(results).graph == 0
        assert opened(busy) <= before


def test_ctrl_c_cancels_every_job_under_way(busy: Server, tmp_path: Path) -> None:
    before = opened(busy)
    script = """
import sys
from tensorkiln import Client
from tests.service.bodies import graph
with Client(sys.argv[1], cache_dir=sys.argv[2]) as client:
    for outcome in client.compile_many([graph("sqrt", rows=rows) for rows in range(90, 96)], ["cpu"], concurrency=4):
        print(outcome, flush=True)
"""
    command = [sys.executable, "-W", "error", "-c", script, busy.url, str(tmp_path)]
    ended = broken_off(command, lambda: len(opened(busy) - before) >= 4)
    assert (ended.returncode, ended.stdout) == (-signal.SIGINT, "")
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt")
    assert opened(busy) <= before
