"""A right to read lasts as long as what it is to, and no longer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from service.action import Action
from service.identity.caller import EVERYTHING, Caller
from service.identity.tenancy import Access
from service.store import evict as evicting
from service.store.blobs import FRESH_S, Blobs
from service.store.evict import GRACE_S, Bounds, evict
from service.store.location import ObjectStore, open_store
from service.store.programs import Entry
from service.store.records import Records
from service.upkeep.scrub import scrub
from tests.service.test_store import flip
from tests.trust.stores import Stocked, age

HOUR_S = 3600.0
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
    # One is enough: with it go its rights.
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
