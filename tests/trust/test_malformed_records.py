"""A record whose bytes are whole and that says something else than records do is damaged, and holds nothing up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.store.evict import Bounds, evict
from service.upkeep.scrub import scrub
from service.upkeep.upkeep import upkeep
from tests.trust.stores import Stocked, age

HOUR_S = 3600.0
DIGEST = "0" * 64

MALFORMED: list[tuple[str, dict[str, Any]]] = [
    ("requests", {}),
    ("requests", {"answer": 5, "blobs": []}),
    ("requests", {"answer": DIGEST, "blobs": [["x"]], "programs": [], "keys": []}),
    ("requests", {"answer": DIGEST, "blobs": [], "programs": "all", "keys": []}),
    ("programs", {}),
    ("programs", {"signed": 5}),
    ("programs", {"signed": "not JSON"}),
    ("programs", {"signed": "[]"}),
    ("programs", {"signed": '{"record":{"program":5}}'}),
    ("programs", {"signed": '{"record":{"program":"' + DIGEST + '","artifacts":[],"stages":[]}}'}),
    ("crashes", {"problem": 5}),
    ("nearest", {"entries": 5}),
    ("jobs/ended", {"answer": [5]}),
]


async def write(stocked: Stocked, seconds: float = 0.0) -> list[Path]:
    """The paths of malformed records that are so old."""
    paths: list[Path] = []
    for number, (folder, content) in enumerate(MALFORMED):
        path = f"{folder}/ab/{number:064x}"
        await stocked.records.put(path, content)
        age(stocked.root / path, seconds)
        paths.append(stocked.root / path)
    return paths


async def test_a_malformed_record_needs_nothing_and_goes_like_any(stocked: Stocked) -> None:
    wanted = await stocked.save(1)
    paths = await write(stocked, 30 * HOUR_S)
    evicted = await evict(stocked.store, Bounds(max_age_s=24 * HOUR_S))
    assert evicted.records == len(paths)
    assert not any(path.exists() for path in paths)
    assert await stocked.is_whole(wanted)
    assert evicted.held_bytes == sum(path.stat().st_size for path in stocked.files())


async def test_a_service_evicts_beside_malformed_records(stocked: Stocked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_HOME", str(stocked.root.parent))
    monkeypatch.setenv("KILN_STORE_MAX_AGE_H", "1")
    monkeypatch.setattr("service.upkeep.upkeep.EVERY_S", 0.02)
    await write(stocked)
    wanted = await stocked.save(1)
    age(stocked.path(wanted), 2 * HOUR_S)
    async with asyncio.timeout(30), upkeep(Settings()):
        while stocked.path(wanted).exists():
            await asyncio.sleep(0.01)


async def test_a_scrub_removes_what_nobody_believes_and_what_nobody_can_read(stocked: Stocked) -> None:
    paths = await write(stocked)
    sealed: dict[str, Any] = {"answer": DIGEST, "isolation": "process"}
    key = "a" * 64
    seal = stocked.notary.seal({**sealed, "request": key})
    await stocked.records.put(f"requests/aa/{key}", {**sealed, "seal": seal})
    assert await stocked.repeats.find(key) is None
    report = await scrub(stocked.store, stocked.notary)
    assert report.corrupt == [f"requests/aa/{key}"]
    assert len(report.untrusted) == sum(folder in ("requests", "programs") for folder, _ in MALFORMED)
    assert [path for path in paths if path.exists()] == paths[-3:]
    assert (await scrub(stocked.store, stocked.notary)).is_clean
