"""Waiting is told apart from the work and is no part of its deadline; a few begin at a time, another tenant's next."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.engine.flights import Flights
from service.fairness.queue_time import QueueTime, begin_queue_time, queue_time
from service.http.middlewares import PER_PASS, Admission
from service.identity.caller import LOCAL, Caller, acting_as
from service.identity.register import TenantRecord
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server
from tests.service.test_jobs import ended, events, submit

DEADLINE_S = 5.0
OCCUPIED_S = 1.2


@pytest.fixture(scope="module")
def one_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
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


FLOOD = 40 * PER_PASS
PUBLIC = "/healthz"


class Begun:
    def __init__(self) -> None:
        self.at: list[tuple[int, str, str]] = []
        self.passes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.at.append((self.passes, scope["tenant"], scope["path"]))

    async def count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.passes += 1


async def unheard(*_: Message) -> Any:
    raise AssertionError


def admitted(flood: int, *others: tuple[str, str]) -> Begun:
    """What begins when a tenant asks for very much, and then `others` ask, each a tenant and a path."""
    begun = Begun()
    app = Admission(begun, lambda _: TenantRecord(), {PUBLIC})

    def asked(who: Caller, path: str) -> asyncio.Task[None]:
        with acting_as(who):
            return asyncio.create_task(app({"type": "http", "path": path, "tenant": who.tenant}, unheard, unheard))

    async def run() -> None:
        counting = asyncio.create_task(begun.count())
        tasks = [asked(replace(LOCAL, tenant="flood"), "/compile") for _ in range(flood)]
        await asyncio.sleep(0)
        tasks += [asked(replace(LOCAL, tenant=tenant), path) for tenant, path in others]
        await asyncio.gather(*tasks)
        counting.cancel()

    asyncio.run(run())
    return begun


def test_few_requests_begin_in_a_pass() -> None:
    begun = admitted(FLOOD)
    assert len(begun.at) == FLOOD
    for number in range(begun.passes + 1):
        assert [each for each, *_ in begun.at].count(number) <= PER_PASS


def test_another_tenant_does_not_wait_for_a_flood() -> None:
    order = [tenant for _, tenant, _ in admitted(FLOOD, ("calm", "/compile")).at]
    assert order.index("calm") <= 4 * PER_PASS


def test_public_paths_wait_for_nobody() -> None:
    begun = admitted(FLOOD, *[("", PUBLIC)] * FLOOD)
    passes = {number for number, _, path in begun.at if path == PUBLIC}
    assert max(passes) <= 3


async def test_one_that_leaves_keeps_no_place() -> None:
    begun = Begun()
    app = Admission(begun, lambda _: TenantRecord(), ())
    scope = {"type": "http", "path": "/compile", "tenant": ""}
    with acting_as(LOCAL):
        tasks = [asyncio.create_task(app(scope, unheard, unheard)) for _ in range(FLOOD)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await app(scope, unheard, unheard)
    assert len(begun.at) == 1
