"""Streams of events: a tenant that opens many leaves some to others."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from service.engine import jobs as module
from service.engine.job_work import JobWork
from service.engine.jobs import Jobs
from service.fairness.shares import Shares
from service.fairness.turns import Fairness
from service.identity.caller import Caller, acting_as
from service.identity.register import TenantRecord
from service.identity.scopes import EVERYTHING
from service.settings import Settings
from service.store.blobs import Blobs
from service.store.job_records import JobRecords
from service.store.location import open_store
from service.store.records import Records
from tensorkiln.errors import RateLimitedError


async def nothing(*_: object) -> bytes:
    return b""


def test_a_tenant_that_listens_to_many_jobs_leaves_some_streams_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_STREAMS", 16)

    async def run() -> None:
        store = open_store(str(tmp_path))
        records, blobs = Records(store), Blobs(store)
        job_records = JobRecords(store, records)
        turns = Fairness(Settings(), lambda _: TenantRecord()).jobs
        jobs = Jobs(JobWork(nothing, job_records, blobs, turns, Shares(1)), job_records, blobs, most=8)
        with ExitStack() as open_streams:
            with acting_as(Caller("key", "a", "a", EVERYTHING)):
                for _ in range(12):
                    open_streams.enter_context(jobs.listened_to())
                with pytest.raises(RateLimitedError) as caught, jobs.listened_to():
                    pass
            assert caught.value.details == {"limit": "streams", "maximum": 16, "actual": 12, "retry_after_s": 1}
            with acting_as(Caller("key", "b", "b", EVERYTHING)), jobs.listened_to():
                pass
        with acting_as(Caller("key", "a", "a", EVERYTHING)), jobs.listened_to():
            pass

    asyncio.run(run())
