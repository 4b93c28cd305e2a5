"""A program is in use while answers with it are repeated, and outlives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.action import Action
from service.store.blobs import Blobs
from service.store.evict import Bounds, evict
from service.store.location import open_store
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.store.repeats import Repeat, Repeats
from service.upkeep.scrub import scrub
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
