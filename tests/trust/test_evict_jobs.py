"""What a job came to is there for as long as the job is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from service.identity.caller import LOCAL, acting_as
from service.store.evict import ENDED_KEPT_S, GRACE_S, Bounds, evict
from service.trust.notary import with_signatures
from tests.service.house import BODY, LEFT, House
from tests.trust.stores import Stocked, action

BOUNDS = [Bounds(max_bytes=0), Bounds(max_age_s=GRACE_S)]


async def job_with(stocked: Stocked, *numbers: int) -> Path:
    """The record of a job that is over, whose answer names programs that are made for it, and one without a record."""
    entries = [await stocked.entry((await stocked.save(number)).digest) for number in numbers]
    answer = with_signatures(b'{"programs":[]}', ["", *(entry.signature for entry in entries)])
    with acting_as(LOCAL):
        job = (await House(stocked.root).jobs().accept(BODY, answer)).record
    return stocked.root / "jobs" / "ended" / job.id[:2] / job.id


@pytest.mark.parametrize("bounds", BOUNDS)
async def test_a_job_that_has_ended_is_kept_with_its_programs_and_goes_with_them(
    stocked: Stocked, bounds: Bounds
) -> None:
    job = await job_with(stocked, 1, 2)
    await stocked.save(3)
    stocked.age("", seconds=ENDED_KEPT_S - 60)
    evicted = await evict(stocked.store, bounds)
    assert job.exists()
    assert [stocked.path(action(number)).exists() for number in (1, 2, 3)] == [True, True, False]
    assert evicted.held_bytes == sum(path.stat().st_size for path in stocked.files())
    assert [await stocked.is_whole(action(number)) for number in (1, 2)] == [True, True]
    stocked.age("", seconds=ENDED_KEPT_S + 60)
    assert (await evict(stocked.store, bounds)).held_bytes == 0
    assert stocked.files() == []


async def test_what_a_job_names_outlives_the_record_of_its_program(stocked: Stocked) -> None:
    await job_with(stocked, 1)
    entry = await stocked.entry(action(1).digest)
    stocked.path(action(1)).unlink()
    stocked.age("", seconds=ENDED_KEPT_S - 60)
    await evict(stocked.store, Bounds(max_bytes=0))
    assert await stocked.blobs.holds(entry.blobs)


@pytest.mark.parametrize("programs", [5, ["x"], {"a": 1}])
async def test_a_job_whose_record_says_something_else_keeps_nothing(stocked: Stocked, programs: object) -> None:
    wanted = await stocked.save(1)
    await stocked.records.put("jobs/ended/ab/x", {"programs": programs})
    stocked.age("", seconds=ENDED_KEPT_S - 60)
    await evict(stocked.store, Bounds(max_bytes=0))
    assert not stocked.path(wanted).exists()


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("is_open", [False, True])
async def test_how_far_a_job_is_keeps_its_request_for_as_long_as_it_is_open(
    stocked: Stocked, bounds: Bounds, is_open: bool
) -> None:
    jobs = House(stocked.root).job_records
    record = replace(LEFT, body=await stocked.blobs.put(b"request"))
    if is_open:
        await jobs.write(record)
        (opened,) = stocked.files("jobs/open")
        opened.write_bytes(b"torn")  # The other record is what its request is known by.
    await jobs.publish(record)
    stocked.age("", seconds=2 * GRACE_S)
    before = stocked.files()
    evicted = await evict(stocked.store, bounds)
    assert stocked.files() == (before if is_open else [])
    assert (evicted.records, evicted.blobs) == ((0, 0) if is_open else (1, 1))
