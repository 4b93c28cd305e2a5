"""A store is verified, kept within its bounds, and never broken by either."""

from __future__ import annotations

import asyncio
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from service.store.attempts import REMEMBERED_S
from service.store.evict import GRACE_S, LEFT_S, READINESS, Bounds, evict, upkeep
from service.store.job_records import JobRecord, JobRecords
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from service.upkeep.scrub import scrub
from tensorkiln.trust import SignedRecord
from tests.service.test_store import flip
from tests.trust.conftest import Scrubbed
from tests.trust.stores import Stocked, age, counted

HOUR_S = 3600.0
OLD_S = 2 * max(LEFT_S, GRACE_S)


@pytest.mark.parametrize("kept", [0, 4])
async def test_a_scrub_reports_what_is_not_whole_and_removes_it_or_keeps_it(
    scrubbed: Scrubbed, stocked: Stocked, kept: int
) -> None:
    # Of four programs one has a damaged artifact, one an untrusted record and one a damaged record.
    actions = [await stocked.save(number) for number in range(4)]
    entry = await stocked.entry(actions[0].digest)
    flip(stocked.root / "blobs" / entry.program[:2] / entry.program)
    await stocked.records.put(f"programs/{actions[1].digest[:2]}/{actions[1].digest}", {"signed": "{}"})
    flip(stocked.path(actions[2]))
    before = stocked.files()
    status, report = scrubbed("--dry-run")
    assert status == 1
    assert (len(report["corrupt"]), len(report["untrusted"]), len(report["incomplete"])) == (2, 1, 1)
    assert (report["blobs"], report["records"]) == (9, 9)
    assert stocked.files() == before
    assert scrubbed(*(["--quarantine"] if kept else [])) == (1, report)
    assert (len(stocked.files("quarantine")), len(stocked.files())) == (kept, len(before) - 4 + kept)
    status, report = scrubbed()
    assert (status, report["clean"]) == (0, True)


async def test_a_program_in_use_is_the_last_to_go(stocked: Stocked) -> None:
    actions = [await stocked.save(number, 10_000) for number in range(10)]
    stocked.age("blobs")
    for number, wanted in enumerate(actions):
        age(stocked.path(wanted), (20 - number) * HOUR_S)
    assert await stocked.is_whole(actions[0])
    evicted = await evict(stocked.store, Bounds(max_bytes=40_000))
    assert evicted.held_bytes <= 40_000
    assert [await stocked.is_whole(wanted) for wanted in actions] == [True] + [False] * 7 + [True] * 2
    assert (await scrub(stocked.store, stocked.notary)).is_clean


async def test_blobs_that_no_record_names_yet_and_those_that_a_job_names_stay(stocked: Stocked) -> None:
    fresh, forgotten, named = [await stocked.blobs.put(name) for name in (b"fresh", b"forgotten", b"named")]
    await stocked.records.put("jobs/open/1", {"body": named})
    for digest in (forgotten, named):
        age(stocked.root / "blobs" / digest[:2] / digest, 2 * GRACE_S)
    evicted = await evict(stocked.store, Bounds(max_bytes=0))
    assert evicted.blobs == 1
    assert await stocked.blobs.get(forgotten) is None
    assert [await stocked.blobs.get(digest) for digest in (fresh, named)] == [b"fresh", b"named"]
    again = await stocked.blobs.put(b"forgotten")
    age(stocked.root / "blobs" / again[:2] / again, 2 * GRACE_S)
    assert await stocked.blobs.put(b"forgotten") == again
    await evict(stocked.store, Bounds(max_bytes=0))
    assert await stocked.blobs.get(again) == b"forgotten"


async def test_a_crash_that_is_forgotten_goes_with_its_reproducer_and_one_that_is_not_stays(stocked: Stocked) -> None:
    for key, seconds in (("old", REMEMBERED_S + 60), ("new", REMEMBERED_S - 60)):
        await stocked.crash(key, {"details": {"reproducer": await stocked.blobs.put(key.encode())}})
        name = sha256(key.encode()).hexdigest()
        age(stocked.root / "crashes" / name[:2] / name, seconds)
    stocked.age("blobs")
    evicted = await evict(stocked.store, Bounds(max_bytes=0))
    assert (evicted.records, evicted.blobs) == (1, 1)
    kept = await stocked.records.get(f"crashes/{name[:2]}/{name}")
    assert kept is not None
    assert await stocked.blobs.get(kept["problem"]["details"]["reproducer"]) == b"new"
    assert evicted.held_bytes == sum(path.stat().st_size for path in stocked.files())
    assert (await scrub(stocked.store, stocked.notary)).is_clean


@pytest.mark.parametrize(
    ("bounds", "left"),
    [
        (Bounds(max_age_s=HOUR_S), {"hours"}),
        (Bounds(max_age_s=60 * HOUR_S), {"hours", "days"}),
        (Bounds(max_bytes=0), {"hours"}),
        (Bounds(max_bytes=1 << 20), {"hours", "days", "weeks"}),
    ],
)
async def test_an_ended_job_is_kept_for_a_day(stocked: Stocked, bounds: Bounds, left: set[str]) -> None:
    answers: dict[str, str] = {}
    for job, hours in (("hours", 23), ("days", 50), ("weeks", 500)):
        answers[job] = await stocked.blobs.put(job.encode())
        await stocked.records.put(f"jobs/ended/{job[:2]}/{job}", {"answer": answers[job]})
        age(stocked.root / "jobs" / "ended" / job[:2] / job, hours * HOUR_S)
    stocked.age("blobs")
    await evict(stocked.store, bounds)
    assert {path.name for path in stocked.files("jobs/ended")} == left
    assert {job for job, answer in answers.items() if await stocked.blobs.get(answer)} == left


async def test_reads_during_an_eviction_find_all_or_nothing(stocked: Stocked) -> None:
    before, found = counted("blob", "record", "program", "answer"), 0

    async def read(number: int) -> None:
        nonlocal found
        for _ in range(6):
            wanted = await stocked.save(number)
            age(stocked.path(wanted), HOUR_S)
            found += await stocked.is_whole(wanted)
            await asyncio.sleep(0)

    async def empty() -> None:
        for _ in range(12):
            await evict(stocked.store, Bounds(max_age_s=60.0), grace_s=0.0)
            await asyncio.sleep(0.001)

    await asyncio.gather(empty(), *map(read, range(12)))
    assert counted("blob", "record", "program", "answer") == before
    assert found > 0
    for number in range(12):
        assert await stocked.is_whole(await stocked.save(number))


@pytest.mark.parametrize("max_age_h", [0, 1000])
async def test_upkeep_removes_only_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_age_h: int) -> None:
    for name in ("EVERY_S", "UNBOUNDED_EVERY_S"):
        monkeypatch.setattr(f"service.store.evict.{name}", 0.02)
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
    async with asyncio.timeout(30), upkeep(stocked.store, Bounds.of(0, max_age_h)):
        while any(path.exists() for path in left):
            await asyncio.sleep(0.01)
    assert all(path.exists() for path in staying)
    assert await stocked.is_whole(wanted)


async def test_whole_job_records_are_kept_and_damaged_ones_removed_except_open_jobs(stocked: Stocked) -> None:
    jobs, job = JobRecords(stocked.records), "0" * 32
    record = JobRecord(job, await stocked.blobs.put(b"body"), time.time(), {}, owner="somebody")
    await jobs.write(record)
    await jobs.publish(record)
    await jobs.end(JobRecord("e" * 32, "", time.time(), {}, state="cancelled"))
    await jobs.beat("somebody")
    await stocked.store.write(f"jobs/claims/{job}.1.0", b"somebody", durable=False)
    await stocked.crash("key", {"code": "compile.crashed"})
    before = stocked.files()
    report = await scrub(stocked.store, stocked.notary)
    assert (report.is_clean, report.blobs, report.records) == (True, 1, 5)
    assert stocked.files() == before
    folders = ("jobs/ended", "jobs/progress", "jobs/owners", "crashes")
    damaged = [path for folder in folders for path in stocked.files(folder)]
    (opened,) = stocked.files("jobs/open")
    for path in (*damaged, opened):
        flip(path)
    report = await scrub(stocked.store, stocked.notary)
    assert sorted(report.corrupt) == sorted(str(path.relative_to(stocked.root)) for path in (*damaged, opened))
    assert not any(path.exists() for path in damaged)
    assert opened.exists()
    # The job ends with an error when a service takes it up.
    assert await jobs.orphan(job, "another") is None
    ended = await jobs.find(job)
    assert ended is not None
    assert ended.state == "failed"
    assert (await scrub(stocked.store, stocked.notary)).is_clean


@pytest.mark.parametrize("quarantine", [False, True])
async def test_records_written_during_a_scrub_are_kept(stocked: Stocked, tmp_path: Path, quarantine: bool) -> None:
    class Meanwhile(Notary):
        """Judges as others do, and by then the blob that was met is whole."""

        def believes(self, stored: str, action: str) -> SignedRecord | None:
            damaged.write_bytes(b"shared")
            return super().believes(stored, action)

    wanted = await stocked.save(1)
    notary = Meanwhile(Keyring(tmp_path / "keys"), "here", "process")
    (damaged,) = (path for path in stocked.files("blobs") if path.read_bytes() == b"shared")
    flip(damaged)
    age(damaged, 60)
    report = await scrub(stocked.store, notary, quarantine=quarantine)
    assert report.corrupt == [str(damaged.relative_to(stocked.root))]
    assert damaged.read_bytes() == b"shared"
    assert await stocked.is_whole(wanted)


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
    monkeypatch.setattr("service.store.evict.EVERY_S", 0.02)
    await write(stocked)
    wanted = await stocked.save(1)
    age(stocked.path(wanted), 2 * HOUR_S)
    async with asyncio.timeout(30), upkeep(stocked.store, Bounds.of(0, 1)):
        while stocked.path(wanted).exists():
            await asyncio.sleep(0.01)


async def test_a_scrub_removes_what_nobody_believes_and_what_nobody_can_read(stocked: Stocked) -> None:
    paths = await write(stocked)
    sealed: dict[str, Any] = {"answer": DIGEST, "isolation": "process"}
    key = "a" * 64
    await stocked.records.put(f"requests/aa/{key}", stocked.notary.sealed("answer", key, sealed))
    assert await stocked.repeats.find(key) is None
    report = await scrub(stocked.store, stocked.notary)
    assert report.corrupt == [f"requests/aa/{key}"]
    assert len(report.untrusted) == sum(folder in ("requests", "programs") for folder, _ in MALFORMED)
    assert [path for path in paths if path.exists()] == paths[-3:]
    assert (await scrub(stocked.store, stocked.notary)).is_clean
