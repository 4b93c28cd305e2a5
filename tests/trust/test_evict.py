"""What is in use, or was promised for a time, outlives an eviction: programs of answers, what jobs came to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from service.action import Action
from service.identity.caller import LOCAL, acting_as
from service.store.blobs import Blobs
from service.store.evict import ENDED_KEPT_S, GRACE_S, Bounds, evict
from service.store.location import open_store
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.store.repeats import Repeat, Repeats
from service.trust.notary import with_signatures
from service.upkeep.scrub import scrub
from tests.service.house import BODY, LEFT, House
from tests.trust.stores import Stocked, action, age

HOUR_S = 3600.0


async def answered(stocked: Stocked, number: int, size: int = 1000) -> Action:
    """A program, and an answer with it."""
    wanted = await stocked.save(number, size)
    await stocked.repeats.save(stocked.repeats.key(wanted.digest), await repeat_of(stocked, wanted))
    return wanted


async def repeat_of(stocked: Stocked, wanted: Action) -> Repeat:
    entry = await stocked.entry(wanted.digest)
    return Repeat(b"answer about " + wanted.digest.encode(), entry.blobs, (wanted.digest,), isolation="process")


def answer_of(stocked: Stocked, wanted: Action) -> Path:
    key = stocked.repeats.key(wanted.digest)
    return stocked.root / "requests" / key[:2] / key


async def test_a_program_that_repeated_answers_use_is_not_evicted_for_its_age(stocked: Stocked) -> None:
    used, unused = await answered(stocked, 1), await answered(stocked, 2)
    stocked.age("blobs")
    for wanted in (used, unused):
        age(stocked.path(wanted), 30 * HOUR_S)
    age(answer_of(stocked, unused), 30 * HOUR_S)
    evicted = await evict(stocked.store, Bounds(max_age_s=24 * HOUR_S))
    assert evicted.records == 2
    assert await stocked.is_whole(used)
    assert not stocked.path(unused).exists()
    assert not answer_of(stocked, unused).exists()
    assert evicted.held_bytes == sum(path.stat().st_size for path in stocked.files())


async def test_the_programs_that_repeated_answers_use_most_go_last_for_want_of_room(stocked: Stocked) -> None:
    wanted = [await answered(stocked, number, 10_000) for number in range(4)]
    stocked.age("blobs")
    for number, each in enumerate(wanted):
        # The longer ago it was made, the more it is used.
        age(stocked.path(each), (40 - number) * HOUR_S)
        age(answer_of(stocked, each), (1 + number) * HOUR_S)
    evicted = await evict(stocked.store, Bounds(max_bytes=30_000))
    assert evicted.held_bytes <= 30_000
    assert [await stocked.is_whole(each) for each in wanted] == [True, True, False, False]
    assert [answer_of(stocked, each).exists() for each in wanted] == [True, True, False, False]
    assert (await scrub(stocked.store, stocked.notary)).is_clean


async def test_an_answer_in_memory_uses_its_program(stocked: Stocked) -> None:
    wanted = await stocked.save(1)
    repeats = Repeats(stocked.records, stocked.blobs, "", 1 << 20, stocked.notary)
    repeats.remember("k" * 64, await repeat_of(stocked, wanted))
    age(stocked.path(wanted), 30 * HOUR_S)
    assert await repeats.find("k" * 64) is not None
    await evict(stocked.store, Bounds(max_age_s=24 * HOUR_S))
    assert await stocked.is_whole(wanted)


@pytest.mark.parametrize("location", ["", "memory:///"])
async def test_an_answer_goes_with_the_record_of_its_program(tmp_path: Path, location: str) -> None:
    store, notary = open_store(location or str(tmp_path / "store")), Stocked.at(tmp_path / "other").notary
    records, blobs = Records(store), Blobs(store)
    wanted, program = action(1), await blobs.put(b"program")
    await Programs(records, blobs, notary).save(wanted, Entry(program, ()))
    repeats = Repeats(records, blobs, "", 1 << 20, notary)
    await repeats.save("k" * 64, Repeat(b"answer", (program,), (wanted.digest,), isolation="process"))
    fresh = Repeats(records, blobs, "", 1 << 20, notary)
    for each in (repeats, fresh):
        found = await each.find("k" * 64)
        assert found is not None
        assert found.answer == b"answer"
    await records.delete(f"programs/{wanted.digest[:2]}/{wanted.digest}")
    for each in (repeats, fresh, Repeats(records, blobs, "", 0, notary)):
        assert await each.find("k" * 64) is None


BOUNDS = [Bounds(max_bytes=0), Bounds(max_age_s=GRACE_S)]


async def job_with(stocked: Stocked, *numbers: int) -> Path:
    """The record of a job that is over, whose answer names programs that are made for it, and one without a record."""
    entries = [await stocked.entry((await stocked.save(number)).digest) for number in numbers]
    answer = with_signatures(b'{"programs":[]}', ["", *(entry.signature for entry in entries)])
    with acting_as(LOCAL):
        job = (await House(stocked.root).jobs().accept(BODY, answer)).record
    return stocked.root / "jobs" / "ended" / job.id[:2] / job.id


@pytest.mark.parametrize("bounds", BOUNDS)
async def test_an_ended_job_is_kept_with_its_programs_and_goes_with_them(stocked: Stocked, bounds: Bounds) -> None:
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


async def test_programs_of_jobs_outlive_their_records(stocked: Stocked) -> None:
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
async def test_progress_keeps_the_request_of_an_open_job(stocked: Stocked, bounds: Bounds, is_open: bool) -> None:
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
