"""A service removes what killed ones have left in its store, whether or not the store has bounds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from service.settings import Settings
from service.store.evict import GRACE_S, LEFT_S, READINESS
from service.store.job_records import JobRecords
from service.upkeep.upkeep import upkeep
from tests.trust.stores import Stocked, age

OLD_S = 2 * max(LEFT_S, GRACE_S)


@pytest.mark.parametrize("max_age_h", ["0", "1000"])
async def test_upkeep_removes_what_kills_have_left_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_age_h: str
) -> None:
    monkeypatch.setenv("KILN_HOME", str(tmp_path))
    monkeypatch.setenv("KILN_STORE_MAX_AGE_H", max_age_h)
    for name in ("EVERY_S", "UNBOUNDED_EVERY_S"):
        monkeypatch.setattr(f"service.upkeep.upkeep.{name}", 0.02)
    stocked = Stocked.at(tmp_path / "store")
    jobs = JobRecords(stocked.records)
    wanted = await stocked.save(1)
    for path in stocked.files():
        age(path, OLD_S)
    left: list[Path] = []
    staying = [stocked.path(wanted)]
    for is_old in (True, False):
        named = left if is_old else staying
        before = set(stocked.files())
        await jobs.beat(f"owner{is_old}")
        await stocked.records.put(f"{READINESS}look{is_old}", {})
        await stocked.blobs.put(b"the body of a job that was never written down, %d" % is_old)
        named += set(stocked.files()) - before
        named.append(stocked.root / f"blobs/half#{int(is_old)}")
        named[-1].write_bytes(b"half")
    for path in left:
        age(path, OLD_S)
    async with asyncio.timeout(30), upkeep(Settings()):
        while any(path.exists() for path in left):
            await asyncio.sleep(0.01)
    assert all(path.exists() for path in staying)
    assert await stocked.is_whole(wanted)
