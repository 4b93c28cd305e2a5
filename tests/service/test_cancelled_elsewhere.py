"""A job that another service of the store ends: its events, its figures, and what is left of it in the store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from service.engine import jobs as engine_jobs
from service.engine.jobs import Jobs
from service.engine.order import OnProgress
from service.fairness.lane import Turn
from service.fairness.queue_time import queue_time
from service.fairness.turns import Turns
from service.identity.caller import LOCAL, acting_as
from service.store.job_records import Event, JobRecords
from service.wire.body import Body
from tests.service.house import BODY, LEFT, House, Told, ended, endless

STAGES = ("parse", "validate", "lower")


@pytest.fixture(autouse=True)
def _unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other services hear nothing of a job but what its open record says, unless a test wants it."""
    monkeypatch.setattr(engine_jobs, "BEAT_S", 0.05)
    monkeypatch.setattr(engine_jobs, "TELL_S", 60.0)


class Held(JobRecords):
    """Does not say which jobs are open, so that its service gives none up, until it may."""

    def __init__(self, house: House) -> None:
        super().__init__(house.records)
        self.may_look = asyncio.Event()
        self.may_look.set()
        self._is_kept = asyncio.Event()

    async def look_no_more(self) -> None:
        self.may_look.clear()
        await self._is_kept.wait()  # A look that was under way is over.

    async def opened(self) -> list[str]:
        if not self.may_look.is_set():
            self._is_kept.set()
        await self.may_look.wait()
        return await super().opened()


class Two:
    """Two services, the first of which works on a job of three stages until `goes_on` is set."""

    def __init__(self, home: Path) -> None:
        self.goes_on = asyncio.Event()
        self.next_stage = asyncio.Event()
        self.houses = House(home, self._work), House(home)
        self.houses[0].job_records = self.held = Held(self.houses[0])

    async def _work(self, body: Body, on_progress: OnProgress) -> bytes:
        for stage in STAGES:
            on_progress({"stage": stage, "target": None})
        await self.next_stage.wait()
        on_progress({"stage": "codegen", "target": 0})
        await self.goes_on.wait()
        return b"answer"

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str]:
        """The id of a job whose three stages the first service has told."""
        async with self.houses[0].working() as self.working, self.houses[1].working() as self.other:
            job = await self.working.accept(BODY)
            async with asyncio.timeout(20):
                while len(job.record.events) < 2 + len(STAGES):
                    await asyncio.sleep(0.01)
            yield job.record.id


async def told(jobs: Jobs, identifier: str, last: str = "") -> list[Event]:
    with acting_as(LOCAL):
        async with asyncio.timeout(20):
            return [event async for event in jobs.events(identifier, last)]


@pytest.mark.parametrize("who", ["gives it up", "ends it"])
async def test_followers_get_every_event_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    if who == "ends it":
        monkeypatch.setattr(engine_jobs, "BEAT_S", 60.0)  # It is done before its service has looked around.
    two = Two(tmp_path)
    async with two.running() as job:
        listening = asyncio.create_task(told(two.working, job))
        await asyncio.sleep(0.05)
        assert (await two.other.cancel(job)).record.state == "cancelled"
        if who == "ends it":
            two.next_stage.set()
            two.goes_on.set()
        heard = await listening
        stages = [*STAGES, *(["codegen"] if who == "ends it" else [])]
        assert [event.kind for event in heard] == ["queued", "started", *["stage"] * len(stages), "done"]
        assert [event.data["stage"] for event in heard if event.kind == "stage"] == stages
        assert len({event.id for event in heard}) == len(heard)
        assert heard[-1].data["state"] == "cancelled"
        for jobs in (two.working, two.other):
            for event in heard[1:-1]:  # The store knows of the first two.
                assert await told(jobs, job, event.id) == heard[-1:]
            assert await told(jobs, job, heard[-1].id) == []


async def test_events_resume_at_another_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = Two(tmp_path)
    async with two.running() as job:
        monkeypatch.setattr(engine_jobs, "TELL_S", 0.02)
        listening = asyncio.create_task(told(two.other, job, f"1.{2 + len(STAGES)}"))
        await asyncio.sleep(0.2)
        two.next_stage.set()
        two.goes_on.set()
        assert [event.data.get("stage") for event in await listening] == ["codegen", None]


async def test_nothing_is_left_of_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_jobs, "TELL_S", 0.02)
    progress = tmp_path / "jobs" / "progress"

    def names() -> list[str]:
        return [path.name for path in progress.glob("*") if "#" not in path.name]

    two = Two(tmp_path)
    async with two.running() as job, asyncio.timeout(20):
        await two.held.look_no_more()
        await two.other.cancel(job)
        two.next_stage.set()
        while names() != [job]:
            await asyncio.sleep(0.01)
        two.held.may_look.set()
        assert (await ended(two.working, job)).state == "cancelled"
        while two.working.open().total() or names():
            await asyncio.sleep(0.01)


class Gate(Turns):
    def __init__(self, house: House) -> None:
        self._turns = house.turns
        self.is_open = asyncio.Event()

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncGenerator[Turn]:
        await self.is_open.wait()
        async with self._turns.turn(size) as turn:
            yield turn


async def test_a_job_that_was_cancelled_while_it_was_queued_is_not_begun(tmp_path: Path) -> None:
    house = House(tmp_path, work := Told(b"answer"))
    house.turns = gate = Gate(house)
    house.job_records = held = Held(house)
    async with house.working() as working, asyncio.timeout(20):
        await held.look_no_more()
        job = await working.accept(BODY)
        await House(tmp_path).jobs().cancel(job.record.id)
        listening = asyncio.create_task(told(working, job.record.id))
        gate.is_open.set()
        assert await job.end(20)
        assert (job.record.state, work.calls) == ("cancelled", 0)
        assert [event.kind for event in await listening][-1] == "done"
        while working.open().total():
            await asyncio.sleep(0.01)
        assert await JobRecords(house.records).opened() == []
        held.may_look.set()


async def test_its_service_tells_the_end_before_it_has_looked_around(tmp_path: Path) -> None:
    two = Two(tmp_path)
    async with two.running() as job:
        await two.held.look_no_more()
        cancelled = await two.other.cancel(job)
        assert (await two.working.find(job)).record == cancelled.record
        assert two.working.open().total() == 1
        two.held.may_look.set()


@pytest.mark.parametrize(("queue_ms", "ago_s"), [(1500.0, 60.0), (1500.0, -0.5), (None, 60.0)])
async def test_its_figures_are_those_of_its_service(tmp_path: Path, queue_ms: float | None, ago_s: float) -> None:
    house = House(tmp_path)
    await house.job_records.beat("another")
    running = replace(LEFT, owner="another", accepted=time.time() - ago_s, queue_ms=queue_ms)
    await house.job_records.write(replace(running, state="queued" if queue_ms is None else "running"))
    with acting_as(LOCAL):
        await house.jobs().cancel(LEFT.id)
    record = await house.job_records.find(LEFT.id)
    assert record is not None
    assert (record.state, record.queue_ms) == ("cancelled", queue_ms)
    if queue_ms is None:
        assert record.run_ms is None
    else:
        assert record.run_ms is not None
        at_least = ago_s * 1e3 - queue_ms
        assert max(at_least, 0) <= record.run_ms < max(at_least, 0) + 30_000
    done = record.events[-1]
    assert done.data == {"state": "cancelled", "queue_ms": record.queue_ms, "run_ms": record.run_ms}


async def test_the_time_in_a_queue_while_it_ran_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_jobs, "TELL_S", 0.02)

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        await queue_time().sleep(0.3)
        on_progress({"stage": "parse", "target": None})
        return await endless(body, on_progress)

    house = House(tmp_path, work)
    other = house.jobs()
    async with house.working() as working, asyncio.timeout(20):
        job = (await working.accept(BODY)).record.id
        while len((await other.find(job)).record.events) < 3:
            await asyncio.sleep(0.01)
        queue_ms = (await other.cancel(job)).record.queue_ms
    assert queue_ms is not None
    assert queue_ms >= 290
