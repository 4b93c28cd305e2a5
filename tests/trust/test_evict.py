"""What is in use, or was promised for a time, outlives an eviction; a right to read lasts as long as what it is to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.action import Action
from service.identity.caller import EVERYTHING, LOCAL, Caller, acting_as
from service.identity.tenancy import Access
from service.store import evict as evicting
from service.store.blobs import FRESH_S, Blobs
from service.store.evict import ENDED_KEPT_S, GRACE_S, Bounds, evict
from service.store.location import ObjectStore, open_store
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.store.repeats import Repeat, Repeats
from service.trust.notary import with_signatures
from service.upkeep.scrub import scrub
from tests.service.house import BODY, LEFT, House
from tests.service.test_store import flip
from tests.trust.stores import Stocked, action, age

HOUR_S = 3600.0


async def answered(stocked: Stocked, number: int, size: int = 1000) -> Action:
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


ANN, BOB = (Caller(name, f"{name}s", f"{name}s", EVERYTHING) for name in ("ann", "bob"))


async def grant(stocked: Stocked, who: Caller, wanted: Action) -> list[str]:
    """What an answer about a program names, which `who` may read from now on."""
    entry = await stocked.entry(wanted.digest)
    named = [wanted.digest, *entry.blobs]
    await Access(stocked.records).grant(who, named)
    return named


async def may_read(store: ObjectStore, who: Caller, digests: list[str]) -> list[bool]:
    """By another service, which remembers nothing."""
    access = Access(Records(store))
    return [await access.allows(who, digest) for digest in digests]


async def test_rights_go_with_what_they_are_to_and_not_before(stocked: Stocked) -> None:
    old, new = await stocked.save(1), await stocked.save(2)
    mine, others = await grant(stocked, ANN, old), await grant(stocked, BOB, new)
    stocked.age("blobs", "access")
    age(stocked.path(old), 3 * HOUR_S)
    assert await may_read(stocked.store, ANN, mine) == [True] * 4
    evicted = await evict(stocked.store, Bounds(max_age_s=2.5 * HOUR_S))
    # One artifact is the other program's, too.
    assert (evicted.records, evicted.blobs, evicted.rights) == (1, 2, 3)
    assert await may_read(stocked.store, ANN, mine) == [digest in others for digest in mine]
    assert await may_read(stocked.store, BOB, others) == [True] * 4
    assert evicted.held_bytes == sum(path.stat().st_size for path in stocked.files())
    assert (await evict(stocked.store, Bounds(max_age_s=2.5 * HOUR_S))).rights == 0


async def test_the_bytes_of_rights_count_and_go_with_their_program(stocked: Stocked) -> None:
    actions = [await stocked.save(number) for number in range(6)]
    for number in range(40):
        for wanted in actions:
            await grant(stocked, Caller("x", f"{number}", f"{number}", EVERYTHING), wanted)
    stocked.age("blobs", "access")
    for number, wanted in enumerate(actions):
        age(stocked.path(wanted), (20 - number) * HOUR_S)
    held = sum(path.stat().st_size for path in stocked.files())
    evicted = await evict(stocked.store, Bounds(max_bytes=held - 1))
    assert (evicted.records, evicted.blobs, evicted.rights) == (1, 2, 3 * 40)
    assert evicted.held_bytes == sum(path.stat().st_size for path in stocked.files())


async def test_a_right_that_is_younger_than_what_it_is_to_stays(stocked: Stocked) -> None:
    await Access(stocked.records).grant(ANN, ["0" * 64, "1" * 64])
    (path,) = stocked.files("access")[:1]
    age(path, 2 * GRACE_S)
    assert (await evict(stocked.store, Bounds(max_bytes=0))).rights == 1
    assert await may_read(stocked.store, ANN, ["0" * 64, "1" * 64]) in ([True, False], [False, True])


async def test_a_right_to_what_a_record_names_stays_though_the_bytes_are_gone_for_now(stocked: Stocked) -> None:
    wanted = await stocked.save(1)
    named = await grant(stocked, ANN, wanted)
    stocked.age("blobs", "access")
    (stocked.root / "blobs" / named[1][:2] / named[1]).unlink()
    assert (await evict(stocked.store, Bounds(max_age_s=HOUR_S))).rights == 0
    assert await may_read(stocked.store, ANN, named) == [True] * 4


async def test_rights_return_with_a_recompiled_program(stocked: Stocked, monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access(stocked.records)
    await access.grant(ANN, ["0" * 64])
    stocked.age("access")
    assert (await evict(stocked.store, Bounds(max_bytes=0))).rights == 1
    then = time.monotonic() + FRESH_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: then)
    await access.grant(ANN, ["0" * 64])
    assert await may_read(stocked.store, ANN, ["0" * 64]) == [True]


async def test_a_right_that_was_only_looked_at_is_written_again_when_it_is_given_again(stocked: Stocked) -> None:
    await Access(stocked.records).grant(ANN, ["0" * 64])
    stocked.age("access")
    service = Access(stocked.records)
    assert await service.allows(ANN, "0" * 64)
    await service.grant(ANN, ["0" * 64])
    assert (await evict(stocked.store, Bounds(max_bytes=0))).rights == 0


async def test_a_right_outlives_a_race(stocked: Stocked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Stocked.at(tmp_path / "elsewhere")
    entry = await made.programs.entry((await made.save(1)).digest)
    assert entry is not None
    await Access(stocked.records).grant(ANN, [entry.program])
    stocked.age("access")
    remove: Callable[..., Awaitable[bool]] = evicting.remove

    async def slowly(store: ObjectStore, item: Any) -> bool:
        is_gone = await remove(store, item)
        await stocked.save(1)
        return is_gone

    monkeypatch.setattr(evicting, "remove", slowly)
    assert (await evict(stocked.store, Bounds(max_bytes=0))).rights == 0
    assert await may_read(stocked.store, ANN, [entry.program]) == [True]


async def test_a_bucket_is_scrubbed_and_evicted_too(stocked: Stocked) -> None:
    store = open_store("memory:///")
    access, blobs = Access(Records(store)), Blobs(store)
    kept, gone = await blobs.put(b"kept"), await blobs.put(b"gone")
    await Records(store).put("jobs/open/1", {"body": kept})
    await access.grant(ANN, [kept, gone])
    assert (await evict(store, Bounds(max_bytes=0))).rights == 0  # a moment old
    assert (await scrub(store, stocked.notary)).blobs == 2
    evicted = await evict(store, Bounds(max_bytes=0), grace_s=-1.0)
    assert (evicted.blobs, evicted.rights) == (1, 1)
    assert await may_read(store, ANN, [kept, gone]) == [True, False]


async def test_no_right_is_lost_while_others_compile_what_was_evicted(stocked: Stocked) -> None:
    async def work(number: int, who: Caller) -> None:
        access = Access(stocked.records)
        for _ in range(8):
            wanted = await stocked.save(number)
            # The other tenant may have let it age, and so go.
            while not isinstance(entry := await stocked.programs.entry(wanted.digest), Entry):
                await stocked.save(number)
            await access.grant(who, [wanted.digest, *entry.blobs])
            with suppress(FileNotFoundError):
                age(stocked.path(wanted), HOUR_S)
            await asyncio.sleep(0)

    async def empty() -> None:
        for _ in range(12):
            await evict(stocked.store, Bounds(max_age_s=60.0))
            await asyncio.sleep(0.001)

    await asyncio.gather(empty(), *(work(number, who) for number in range(6) for who in (ANN, BOB)))
    for number in range(6):
        named = await grant(stocked, ANN, await stocked.save(number))
        assert await may_read(stocked.store, ANN, named) == [True] * 4
        assert await may_read(stocked.store, BOB, named) == [True] * 4


async def test_a_scrub_counts_rights_and_removes_damaged_ones(stocked: Stocked) -> None:
    await grant(stocked, ANN, await stocked.save(1))
    report = await scrub(stocked.store, stocked.notary)
    assert (report.is_clean, report.rights) == (True, 4)
    assert report.bytes == sum(path.stat().st_size for path in stocked.files())
    damaged = stocked.files("access")[0]
    flip(damaged)
    report = await scrub(stocked.store, stocked.notary)
    assert report.corrupt == [str(damaged.relative_to(stocked.root))]
    assert len(stocked.files("access")) == 3
