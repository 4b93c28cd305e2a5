"""An accepted job ends, whatever breaks around its work: the turns, the store's records, the service itself."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from service.engine import job_work, jobs
from service.engine.job import Job
from service.engine.job_work import MAX_ATTEMPTS, JobWork
from service.engine.jobs import Jobs
from service.engine.order import OnProgress
from service.fairness.lane import Turn
from service.fairness.shares import Shares
from service.fairness.turns import Fairness, Turns
from service.identity.caller import LOCAL, acting_as, caller
from service.identity.register import TenantRecord
from service.process.memory_limit import MemoryLimit
from service.settings import Settings
from service.store.blobs import Blobs, Bodies
from service.store.job_records import Event, JobRecord, JobRecords
from service.store.location import ObjectStore, open_store
from service.store.records import Records
from service.wire.body import Body
from tensorkiln.errors import DiagnosticError, NotFoundError, UnavailableError

Work = Callable[[Body, OnProgress], Awaitable[bytes]]
BODY = Body(b"{}", "0" * 64)
MEMORY = 1 << 20
LEFT = JobRecord("a" * 32, "0" * 64, 1000.0, LOCAL.to_record(), owner="dead", events=(Event("1.1", "queued", {}),))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "BEAT_S", 0.05)
    monkeypatch.setattr(job_work, "_FIRST_PAUSE_S", 0.01)


async def answered(body: Body, on_progress: OnProgress) -> bytes:
    return b"answer"


def bodies_in(store: ObjectStore) -> Bodies:
    """The bodies of jobs in a store."""
    return Bodies(Blobs(store), lambda: caller().tenant, MemoryLimit(4096))


class House:
    """What a service has its jobs in."""

    def __init__(self, home: Path, work: Work = answered) -> None:
        self.store = open_store(str(home))
        self.records = Records(self.store)
        self.job_records = JobRecords(self.records)
        self.turns = Fairness(Settings(), lambda _: TenantRecord()).jobs
        self.work = work

    def jobs(self) -> Jobs:
        blobs = Blobs(self.store)
        bodies = bodies_in(self.store)
        work = JobWork(self.work, self.job_records, blobs, bodies, self.turns, Shares(MEMORY), MemoryLimit(4096))
        return Jobs(work, self.job_records, blobs, bodies, most=8)

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[Jobs]:
        """Its jobs, of which those that were left are taken up."""
        jobs = self.jobs()
        await jobs.start()
        yield jobs
        await jobs.close()


async def ended(jobs: Jobs, identifier: str) -> Job:
    """A job once it is over, of whichever holder; one that never is, is for this time-out."""
    async with asyncio.timeout(60):
        while True:
            with acting_as(LOCAL):
                job = await jobs.find(identifier)
            if job.is_over:
                return job
            await asyncio.sleep(0.02)


async def none_is_open(house: House) -> None:
    """Return when no job is open: its end is seen a moment before it is on the disk, and then it is open no more."""
    async with asyncio.timeout(20):
        while await house.job_records.opened():
            await asyncio.sleep(0.01)


async def seen_through(house: House) -> JobRecord:
    """What comes of a job that is accepted."""
    jobs = house.jobs()
    await jobs.start()
    try:
        with acting_as(LOCAL):
            job = await jobs.accept(BODY)
        record = (await ended(jobs, job.record.id)).record
        await none_is_open(house)
        assert jobs.open().total() == 0
        assert [event.kind for event in record.events].count("done") == 1
        assert record.events[-1].data["state"] == record.state
        return record
    finally:
        await jobs.close()


def failed_by(record: JobRecord) -> str:
    assert record.state == "failed"
    assert record.error is not None
    return record.error["code"]


def test_a_defect_outside_the_work_ends_the_job(tmp_path: Path) -> None:
    class Broken(Turns):
        def __init__(self) -> None:
            pass

        @asynccontextmanager
        async def turn(self, size: int) -> AsyncGenerator[Turn]:
            raise AssertionError("the lanes are not what they were")
            yield

    house = House(tmp_path)
    house.turns = Broken()
    assert failed_by(asyncio.run(seen_through(house))) == "internal"


def test_work_that_some_part_of_the_service_gives_up_is_tried_again_and_then_fails(tmp_path: Path) -> None:
    calls = 0

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        nonlocal calls
        calls += 1
        raise asyncio.CancelledError

    assert failed_by(asyncio.run(seen_through(House(tmp_path, work)))) == "infra.lost_worker"
    assert calls == MAX_ATTEMPTS


def test_an_error_that_cannot_be_written_is_replaced_by_one_that_can(tmp_path: Path) -> None:
    async def work(body: Body, on_progress: OnProgress) -> bytes:
        raise DiagnosticError("no", details={"what": object()})

    assert failed_by(asyncio.run(seen_through(House(tmp_path, work)))) == "internal"


def test_a_job_whose_end_cannot_be_written_for_a_while_is_taken_up_again(tmp_path: Path) -> None:
    class Failing(JobRecords):
        left = 2

        async def end(self, record: JobRecord) -> JobRecord:
            if self.left:
                self.left -= 1
                raise RuntimeError("a defect")
            return await super().end(record)

    house = House(tmp_path)
    house.job_records = Failing(house.records)
    record = asyncio.run(seen_through(house))
    assert (record.state, record.attempt) == ("done", 2)


def test_a_job_that_cannot_be_told_of_is_taken_up_so_often_and_then_fails(tmp_path: Path) -> None:
    house = House(tmp_path)
    calls = 0

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        nonlocal calls
        calls += 1
        on_progress({"stage": object()})
        return b"answer"

    house.work = work
    record = asyncio.run(seen_through(house))
    assert failed_by(record) == "infra.lost_worker"
    assert calls == MAX_ATTEMPTS


async def test_a_request_that_leaves_while_its_job_is_recorded_leaves_no_open_job_behind(tmp_path: Path) -> None:
    has_left = asyncio.Event()

    class Slow(JobRecords):
        looks = 0

        async def write(self, record: JobRecord) -> None:
            await super().write(record)
            await has_left.wait()

        async def opened(self) -> list[str]:
            self.looks += 1
            return await super().opened()

    house = House(tmp_path)
    stored = house.job_records
    house.job_records = slow = Slow(house.records)
    async with house.working() as jobs:
        with acting_as(LOCAL):
            accepting = asyncio.create_task(jobs.accept(BODY))
        while not (opened := await stored.opened()):
            await asyncio.sleep(0.01)
        # It is not taken from the hands of the one that accepts it, however often its service looks around.
        looks = slow.looks
        while slow.looks < looks + 3:
            await asyncio.sleep(0.01)
        accepting.cancel()
        with suppress(asyncio.CancelledError):
            await accepting
        has_left.set()
        assert (await ended(jobs, opened[0])).record.attempt == 2


async def test_a_job_is_cancelled_also_when_the_store_does_not_take_that_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.engine.jobs.CANCEL_S", 0.05)

    class Refusing(JobRecords):
        refuses = True

        async def end(self, record: JobRecord) -> JobRecord:
            if self.refuses:
                raise UnavailableError("The store is away.")
            return await super().end(record)

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        return await asyncio.Event().wait() and b""

    house = House(tmp_path, work)
    house.job_records = refusing = Refusing(house.records)
    async with house.working() as jobs:
        with acting_as(LOCAL):
            job = await jobs.accept(BODY)
            with pytest.raises(UnavailableError, match="being cancelled, but its end"):
                await jobs.cancel(job.record.id)
            refusing.refuses = False
            assert (await ended(jobs, job.record.id)).record.state == "cancelled"
            assert (await jobs.cancel(job.record.id)).record.state == "cancelled"
        assert jobs.open().total() == 0


def unsealed_bytes(house: House, home: Path) -> None:
    (home / "jobs" / "open" / LEFT.id).write_bytes(b"x" * 200)


DAMAGES: dict[str, dict[str, Any]] = {
    "no owner": {"owner": None},
    "no state": {"state": "asleep"},
    "no events": {"events": [{"kind": 1}]},
    "no attempt": {"attempt": "x"},
    "no time": {"accepted": 1e308},
    "no number": {"accepted": math.nan},
    "no problem": {"error": {"a": 1}},
    "no stage": {"events": [{"id": "1.1", "kind": "stage", "data": {}}]},
}


@pytest.mark.parametrize("damage", [None, *DAMAGES])
async def test_a_job_whose_record_is_damaged_fails_and_holds_up_no_other(tmp_path: Path, damage: str | None) -> None:
    house = House(tmp_path)
    blob = await Blobs(house.store).put(b"{}")
    other = replace(LEFT, id="b" * 32, body=blob)
    await house.job_records.write(other)
    await house.records.put(
        f"jobs/open/{LEFT.id}", {**asdict(other), "id": LEFT.id, **(DAMAGES[damage] if damage else {})}
    )
    if damage is None:
        unsealed_bytes(house, tmp_path)
    async with house.working() as jobs:
        lost = await ended(jobs, LEFT.id)
        assert failed_by(lost.record) == "infra.unavailable"
        assert [event.kind for event in lost.record.events][-1] == "done"
        assert (await ended(jobs, other.id)).record.state == "done"
        await none_is_open(house)


@pytest.mark.parametrize("caller", [{}, {"name": "x"}, {**LOCAL.to_record(), "scopes": ["of a later version"]}])
async def test_a_job_of_a_caller_that_nobody_can_read_fails(tmp_path: Path, caller: dict[str, Any]) -> None:
    house = House(tmp_path)
    await house.job_records.write(replace(LEFT, caller=caller))
    async with house.working() as jobs:
        assert failed_by((await ended(jobs, LEFT.id)).record) == "internal"


async def test_a_field_of_a_later_version_does_not_keep_a_job_from_being_done(tmp_path: Path) -> None:
    house = House(tmp_path)
    blob = await Blobs(house.store).put(b"{}")
    await house.records.put(f"jobs/open/{LEFT.id}", {**asdict(LEFT), "body": blob, "colour": "red"})
    async with house.working() as jobs:
        assert (await ended(jobs, LEFT.id)).record.state == "done"


async def test_a_job_whose_request_is_gone_fails(tmp_path: Path) -> None:
    house = House(tmp_path)
    await house.job_records.write(LEFT)
    async with house.working() as jobs:
        lost = (await ended(jobs, LEFT.id)).record
        assert failed_by(lost) == "infra.unavailable"
        assert lost.error
        assert lost.error["retryable"] is True


@pytest.mark.parametrize("lost", ["000", "999"])
async def test_a_job_that_the_store_does_not_give_holds_up_no_other(tmp_path: Path, lost: str) -> None:
    class Refusing(JobRecords):
        refused = 0

        async def orphan(self, job: str, owner: str) -> JobRecord | None:
            if job.startswith(lost):
                self.refused += 1
                raise UnavailableError("The store does not give this.")
            return await super().orphan(job, owner)

    house = House(tmp_path)
    house.job_records = refusing = Refusing(house.records)
    blob = await Blobs(house.store).put(b"{}")
    left = [f"{number * 111:03}" + "a" * 29 for number in range(10)]
    for identifier in left:
        await house.job_records.write(replace(LEFT, id=identifier, body=blob))
    async with house.working() as jobs:
        for identifier in left:
            assert identifier.startswith(lost) or (await ended(jobs, identifier)).record.state == "done"
        assert refusing.refused


async def test_a_service_that_could_not_write_that_it_took_a_job_takes_it_up_later(tmp_path: Path) -> None:
    class Refusing(JobRecords):
        refuses = True

        async def write(self, record: JobRecord) -> None:
            if self.refuses:
                self.refuses = False
                raise UnavailableError("The store is away.")
            await super().write(record)

    house = House(tmp_path)
    blob = await Blobs(house.store).put(b"{}")
    await house.job_records.write(replace(LEFT, body=blob))
    house.job_records = Refusing(house.records)
    async with house.working() as jobs:
        assert jobs.open().total() == 0
        assert (await ended(jobs, LEFT.id)).record.state == "done"


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_job_whose_end_is_damaged_is_told_of_no_more(tmp_path: Path, damage: str) -> None:
    house = House(tmp_path)
    path = f"jobs/ended/{LEFT.id[:2]}/{LEFT.id}"
    await house.records.put(path, {**asdict(LEFT), "state": "cancelled", **DAMAGES[damage]})
    with acting_as(LOCAL), pytest.raises(NotFoundError):
        await house.jobs().cancel(LEFT.id)
    assert not (tmp_path / path).exists()
