"""What ends an accepted job: services and workers that are lost over it, not how often it or a compile was begun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from service.engine import job_work
from service.engine.job import Job
from service.engine.job_work import MAX_ATTEMPTS
from service.engine.order import OnProgress
from service.fairness.lane import Turn
from service.fairness.turns import Turns
from service.identity.caller import LOCAL, acting_as
from service.store.blobs import Blobs
from service.store.job_records import JobRecord
from service.wire.body import Body
from tensorkiln.errors import LostWorkerError, UnavailableError
from tests.service.test_job_ends import BODY, LEFT, House, failed_by
from tests.service.test_job_ends import ended as over


def ended(home: Path, work: Callable[[Body, OnProgress], Awaitable[bytes]]) -> Job:
    """A job once it is over, of which `work` makes the answer."""

    async def run() -> Job:
        jobs = House(home, work).jobs()
        await jobs.start()
        with acting_as(LOCAL):
            job = await jobs.accept(Body(b"{}", "0" * 64), None)
        assert await job.end(30)
        await jobs.close()
        return job

    return asyncio.run(run())


def test_a_compile_that_was_begun_again_often_does_not_use_up_the_job(tmp_path: Path) -> None:
    calls = 0

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        nonlocal calls
        calls += 1
        if calls > 1:
            return b"answer"
        for attempt in range(2, MAX_ATTEMPTS + 2):
            on_progress({"stage": "retry", "attempt": attempt})
        raise UnavailableError("The store is away for a moment.")

    job = ended(tmp_path, work)
    assert (job.record.state, job.record.attempt, calls) == ("done", MAX_ATTEMPTS + 1, 2)


def test_a_job_ends_when_enough_workers_are_lost_over_it(tmp_path: Path) -> None:
    calls = 0

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        nonlocal calls
        calls += 1
        on_progress({"stage": "retry", "attempt": 2})
        raise LostWorkerError("Two were lost.", details={"attempts": 2})

    job = ended(tmp_path, work)
    assert (job.record.state, calls) == ("failed", 3)
    assert job.record.error is not None
    assert job.record.error["code"] == "infra.lost_worker"


def test_a_store_that_is_away_for_long_ends_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_work, "_MAX_PAUSE_S", 0.0)
    calls = 0

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        nonlocal calls
        calls += 1
        if calls > 3 * MAX_ATTEMPTS:
            return b"answer"
        raise UnavailableError("The store is away for a moment.")

    assert ended(tmp_path, work).record.state == "done"


def test_compiles_that_come_to_nothing_end_a_job_when_there_were_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_work, "_PAUSE_AFTER_A_COMPILE_S", 0.0)
    calls = 0

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        nonlocal calls
        calls += 1
        raise UnavailableError("The store does not take what was compiled.", details={"attempts": 1})

    job = ended(tmp_path, work)
    assert job.record.error is not None
    assert (job.record.state, job.record.error["code"], calls) == ("failed", "infra.unavailable", MAX_ATTEMPTS)


class Taken(Turns):
    """Turns that are all another's for as long as anybody waits."""

    def __init__(self) -> None:
        pass

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncGenerator[Turn]:
        await asyncio.Event().wait()
        raise AssertionError("no turn ends")
        yield


@pytest.mark.parametrize("state", ["queued", "running"])
async def test_services_that_stop_in_order_are_not_lost_over_a_job(tmp_path: Path, state: str) -> None:
    async def endless(body: Body, on_progress: OnProgress) -> bytes:
        return await asyncio.Event().wait() and b""

    stopping = House(tmp_path, endless)
    if state == "queued":
        stopping.turns = Taken()
    identifier = ""
    for _ in range(MAX_ATTEMPTS + 1):
        jobs = stopping.jobs()
        await jobs.start()
        with acting_as(LOCAL):
            job = await jobs.find(identifier) if identifier else await jobs.accept(BODY)
        identifier = job.record.id
        async with asyncio.timeout(20):
            while (found := await stopping.job_records.find(identifier)) is None or found.state != state:
                await asyncio.sleep(0.01)
        await jobs.close()
    jobs = House(tmp_path).jobs()
    await jobs.start()
    done = (await over(jobs, identifier)).record
    assert (done.state, done.attempt, done.lost) == ("done", MAX_ATTEMPTS + 2, 0)
    await jobs.close()


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_service_that_is_lost_counts_for_the_jobs_that_it_worked_on(tmp_path: Path, state: str) -> None:
    async def run() -> JobRecord:
        house = House(tmp_path)
        left = replace(LEFT, body=await Blobs(house.store).put(b"{}"), lost=MAX_ATTEMPTS - 1)
        await house.job_records.write(replace(left, state=state))
        jobs = house.jobs()
        await jobs.start()
        record = (await over(jobs, LEFT.id)).record
        await jobs.close()
        return record

    record = asyncio.run(run())
    if state == "queued":
        assert record.state == "done"
    else:
        assert failed_by(record) == "infra.lost_worker"
