"""A scrub looks at jobs and crashes too, and leaves to the services what they are at."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from service.store.job_records import JobRecord, JobRecords
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from service.upkeep.scrub import scrub
from tensorkiln.trust import SignedRecord
from tests.service.test_store import flip
from tests.trust.stores import Stocked, age

JOB, ENDED = "0" * 32, "e" * 32


async def stock(root: Path) -> tuple[Stocked, JobRecords]:
    """An open job that has said how far it is, an ended one, the sign of life of a service, a claim and a crash."""
    stocked = Stocked.at(root)
    jobs = JobRecords(stocked.records)
    record = JobRecord(JOB, await stocked.blobs.put(b"body"), time.time(), {}, owner="somebody")
    await jobs.write(record)
    await jobs.publish(record)
    await jobs.end(JobRecord(ENDED, "", time.time(), {}, state="cancelled"))
    await jobs.beat("somebody")
    await stocked.store.write(f"jobs/claims/{JOB}.1.0", b"somebody", durable=False)
    await stocked.crash("key", {"code": "compile.crashed"})
    return stocked, jobs


async def test_jobs_and_crashes_that_are_whole_are_counted_and_kept(tmp_path: Path) -> None:
    stocked, _ = await stock(tmp_path / "store")
    before = stocked.files()
    report = await scrub(stocked.store, stocked.notary)
    assert (report.is_clean, report.blobs, report.records) == (True, 1, 5)
    assert stocked.files() == before


async def test_damaged_job_records_are_reported_and_removed_except_open_jobs(tmp_path: Path) -> None:
    stocked, jobs = await stock(tmp_path / "store")
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
    assert await jobs.orphan(JOB, "another") is None
    ended = await jobs.find(JOB)
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
