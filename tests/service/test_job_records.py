"""Jobs in a store: one owner at a time, one end, nothing lost when a service goes in the middle of anything."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from service.identity.caller import LOCAL
from service.store.claims import LEASE_S
from service.store.job_records import Event, JobRecord, JobRecords
from service.store.location import open_store
from service.store.records import Records
from tensorkiln.errors import UnavailableError
from tests.clocks import HandClock, by

NOW = 1000.0
JOB = JobRecord("a" * 32, "0" * 64, NOW, LOCAL.to_record(), owner="one", events=(Event("1.1", "queued", {"x": 1}),))


@pytest.fixture
def one(tmp_path: Path) -> JobRecords:
    return JobRecords(Records(open_store(str(tmp_path))))


@pytest.fixture
def two(tmp_path: Path) -> JobRecords:
    return JobRecords(Records(open_store(str(tmp_path))))


@pytest.mark.parametrize("location", ["", "memory:///"])
async def test_jobs_are_found_as_they_were_written_and_as_they_ended(tmp_path: Path, location: str) -> None:
    store = open_store(location or str(tmp_path))
    one, two = JobRecords(Records(store)), JobRecords(Records(store))
    assert await two.find(JOB.id) is None
    await one.write(JOB)
    assert await two.find(JOB.id) == JOB
    assert await two.opened() == [JOB.id]
    done = replace(JOB, state="done", answer="1" * 64, run_ms=1.5)
    assert await one.end(done) == done
    assert await two.find(JOB.id) == done
    assert await two.opened() == []
    assert await two.end(replace(JOB, state="cancelled")) == done


async def test_a_job_taken_over_has_an_unheard_attempt(one: JobRecords, two: JobRecords) -> None:
    await one.write(replace(JOB, state="running"))
    await one.publish(replace(JOB, attempt=3, events=(Event("3.4", "stage", {"stage": "retry"}),)))
    taken = await two.orphan(JOB.id, "two")
    assert taken is not None
    assert (taken.attempt, taken.lost) == (4, 1)


async def test_a_job_is_its_owners_while_that_lives_and_goes_to_one_other_when_it_does_not(tmp_path: Path) -> None:
    store, clock = open_store(str(tmp_path)), HandClock(0.0)
    one, two, three = (by(clock, JobRecords(Records(store))) for _ in range(3))
    await one.beat("one")
    await one.write(JOB)
    for _ in range(3):
        assert await two.orphan(JOB.id, "two") is None
        assert await three.orphan(JOB.id, "three") is None
        clock.at += LEASE_S - 1
        await one.beat("one")
    for each, owner in ((two, "two"), (three, "three")):
        await each.beat(owner)
        assert await each.orphan(JOB.id, owner) is None
    clock.at += LEASE_S + 1
    taken = await asyncio.gather(two.orphan(JOB.id, "two"), three.orphan(JOB.id, "three"))
    (winner,) = [record for record in taken if record is not None]
    assert (winner.attempt, winner.state, winner.events) == (2, "queued", ())
    assert await one.find(JOB.id) == winner
    assert await one.orphan(JOB.id, "four") is None


async def test_a_job_that_is_left_on_purpose_is_free_at_once(one: JobRecords, two: JobRecords) -> None:
    await one.beat("one")
    await one.write(replace(JOB, state="running"))
    await one.release("one", [JOB.id])
    taken = await two.orphan(JOB.id, "two")
    assert taken is not None
    assert taken.lost == 0


async def test_claims_of_dead_services_hold_no_job(one: JobRecords, two: JobRecords, tmp_path: Path) -> None:
    await one.write(JOB)
    claims = tmp_path / "jobs" / "claims"
    claims.mkdir(parents=True)
    (claims / f"{JOB.id}.1.0").write_text("dead")
    record = await two.orphan(JOB.id, "two")
    assert record is not None
    await two.end(replace(record, state="done"))
    assert list(claims.iterdir()) == []


async def test_a_job_that_ended_just_before_its_service_died_is_not_taken_up(one: JobRecords, two: JobRecords) -> None:
    done = replace(JOB, state="done")
    await one.end(done)
    await one.write(JOB)  # as if the end of `end` had not come to pass
    assert await two.orphan(JOB.id, "two") is None
    assert await two.opened() == []
    assert await two.find(JOB.id) == done


@pytest.mark.parametrize("who", ["takes it up", "lays it down"])
async def test_an_ended_job_is_not_opened_again(one: JobRecords, two: JobRecords, tmp_path: Path, who: str) -> None:
    done = replace(JOB, state="done")

    class Late(JobRecords):
        async def write(self, record: JobRecord) -> None:
            await self.end(done)
            await super().write(record)

    await one.write(replace(JOB, state="running"))
    store = open_store(str(tmp_path))
    late = Late(Records(store))
    if who == "takes it up":
        assert await late.orphan(JOB.id, "two") is None
    else:
        await late.release("one", [JOB.id])
    assert await two.opened() == []
    assert await two.find(JOB.id) == done
    assert not list((tmp_path / "jobs" / "claims").glob("*"))


async def test_an_unwritable_end_is_a_store_failure(one: JobRecords, two: JobRecords, tmp_path: Path) -> None:
    await one.write(JOB)
    path = tmp_path / "jobs" / "ended" / JOB.id[:2] / JOB.id
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "nowhere")
    done = replace(JOB, state="done")
    async with asyncio.timeout(20):
        with pytest.raises(UnavailableError):
            await one.end(done)
    assert await two.find(JOB.id) == JOB
    path.unlink()
    assert await one.end(done) == done
