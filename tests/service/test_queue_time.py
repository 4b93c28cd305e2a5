"""Time in a queue is told apart from the time of the work, and no part of its deadline."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from service.engine.flights import Flights
from service.fairness.queue_time import QueueTime, begin_queue_time, queue_time
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server
from tests.service.test_jobs import ended, events, submit

DEADLINE_S = 5.0
OCCUPIED_S = 1.2


@pytest.fixture(scope="module")
def one_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that compiles one graph at a time."""
    home = tmp_path_factory.mktemp("one_place")
    with Server(home, concurrency=1, compile_deadline_s=DEADLINE_S, fails=True) as server:
        yield server


@contextmanager
def occupied(server: Server, rows: int) -> Generator[None]:
    """Somebody else's compile has the only place until it is cancelled."""
    while server.jobs("compile"):
        time.sleep(0.01)
    job = submit(server, encoded(compile_body(graph(rows=rows))), fails="hang").json()["id"]
    server.at_work()
    over = threading.Timer(OCCUPIED_S, lambda: server.http.delete(f"/jobs/{job}"))
    over.start()
    yield
    over.join()


@pytest.mark.xdist_group("places")
def test_a_job_and_a_request_that_wait_for_a_place_say_so(one_place: Server) -> None:
    with occupied(one_place, 20), ThreadPoolExecutor(1) as pool:
        job = submit(one_place, encoded(compile_body(graph(rows=21)))).json()["id"]
        asked = pool.submit(one_place.compile, encoded(compile_body(graph(rows=31))))
        path = f"/jobs/{job}"
        meanwhile = one_place.http.get(path)
        while (meanwhile.json()["queue_ms"] or 0.0) < 300:
            meanwhile = one_place.http.get(path)
        done, answer = ended(one_place, job), asked.result()
    assert meanwhile.json()["state"] == "running"
    assert done["state"] == "done"
    assert done["queue_ms"] > 300
    assert done["run_ms"] > 0
    last = events(one_place, job)[-1]["data"]
    assert (last["queue_ms"], last["run_ms"]) == (done["queue_ms"], done["run_ms"])
    found = re.fullmatch(r"queue;dur=(\S+), total;dur=(\S+)", answer.headers["Server-Timing"])
    assert found is not None
    queue, total = float(found[1]), float(found[2])
    assert 300 < queue < total


@pytest.mark.xdist_group("places")
def test_a_compile_that_took_too_long_says_for_how_long_it_waited_besides(one_place: Server) -> None:
    with occupied(one_place, 40):
        details = one_place.compile(encoded(compile_body(graph(rows=41))), "hang").json()["details"]
    assert details["queue_ms"] > 300
    assert details["deadline_s"] == DEADLINE_S


def test_only_what_holds_all_of_the_work_up_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    counted = QueueTime()
    steps = [(1, 0), (-1, 1), (1, 0), (0, -1), (-1, 1), (0, -1)]
    for waiting, running in steps:
        counted.change(waiting=waiting, running=running)
        now += 1.0
    assert counted.seconds == 2.0
    counted.add(0.5)
    assert counted.milliseconds == 2500.0


def test_queue_time_of_shared_compiles_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    mine, other = QueueTime(), QueueTime()
    with mine.since(other), mine.since(mine), mine.since(other):
        other.change(waiting=1)
        now += 1.0
    now += 1.0
    assert (mine.seconds, other.seconds) == (1.0, 2.0)


async def test_queue_time_of_a_follower_starts_when_it_joins() -> None:
    flights: Flights[str, str] = Flights()
    may_go_on = asyncio.Event()

    async def work(_: object) -> str:
        queue_time().change(waiting=1)
        await may_go_on.wait()
        queue_time().change(waiting=-1)
        return "done"

    async def ask() -> QueueTime:
        mine = begin_queue_time()
        assert await flights.join("key", work) == "done"
        return mine

    first = asyncio.create_task(ask())
    await asyncio.sleep(0.1)
    second = asyncio.create_task(ask())
    await asyncio.sleep(0.1)
    may_go_on.set()
    one, other = await first, await second
    assert one.seconds > other.seconds > 0.05
