"""What a service has its jobs in: a store, turns, and work that comes to what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from service.engine.compiles import Compiles
from service.engine.job_work import JobWork
from service.engine.jobs import Jobs
from service.engine.order import CompileEngine, OnProgress
from service.fairness.lane import FairLane
from service.fairness.shares import Shares
from service.fairness.turns import Fairness, Turns
from service.identity.caller import LOCAL, acting_as, caller
from service.identity.keyring import Keyring
from service.identity.register import TenantRecord
from service.identity.tenancy import Tenancy
from service.process.memory_limit import MemoryLimit
from service.settings import Settings
from service.store.blobs import Blobs, Bodies
from service.store.job_records import Event, JobRecord, JobRecords
from service.store.location import ObjectStore, open_store
from service.store.nearest import Nearest
from service.store.programs import Programs
from service.store.records import Records
from service.wire.body import Body

Work: TypeAlias = Callable[[Body, OnProgress], Awaitable[bytes]]
BODY = Body(b"{}", "0" * 64)
MEMORY = 1 << 20
"""Bytes that there are for the requests of jobs."""
LEFT = JobRecord("a" * 32, "0" * 64, 1000.0, LOCAL.to_record(), owner="dead", events=(Event("1.1", "queued", {}),))
"""A job of a service that is lost."""


class Told:
    """Work that comes to these outcomes in turn, and to the last again and again; before each it tells the `news`."""

    def __init__(self, *outcomes: bytes | BaseException, news: Any = None) -> None:
        self.calls = 0
        self._outcomes, self._news = outcomes, news

    async def __call__(self, body: Body, on_progress: OnProgress) -> bytes:
        outcome = self._outcomes[min(self.calls, len(self._outcomes) - 1)]
        self.calls += 1
        if self._news is not None:
            on_progress(self._news)
        if isinstance(outcome, bytes):
            return outcome
        raise outcome


async def endless(body: Body, on_progress: OnProgress) -> bytes:
    return await asyncio.Event().wait() and b""


def bodies_in(store: ObjectStore) -> Bodies:
    return Bodies(Blobs(store), lambda: caller().tenant, MemoryLimit(4096))


def compiles_by(engine: CompileEngine, lane: FairLane, home: Path, records: Records, programs: Programs) -> Compiles:
    """Compiles of the tenants of this home by an engine, which have turns in a lane."""
    keyring = Keyring(home / "identity")
    tenancy, nearest = Tenancy(keyring, records, ""), Nearest(records, programs.entry)
    return Compiles(engine, Turns(lane, keyring.tenant), tenancy, programs, nearest)


class House:
    """A store on a disk, and what the jobs of one service are made of."""

    def __init__(self, home: Path, work: Work | None = None) -> None:
        self.store = open_store(str(home))
        self.blobs = Blobs(self.store)
        self.records = Records(self.store)
        self.job_records = JobRecords(self.records)
        self.turns = Fairness(Settings(), lambda _: TenantRecord()).jobs
        self.work = work or Told(b"answer")

    def jobs(self) -> Jobs:
        """The jobs of one more service."""
        bodies, memory = bodies_in(self.store), MemoryLimit(4096)
        work = JobWork(self.work, self.job_records, self.blobs, bodies, self.turns, Shares(MEMORY), memory)
        return Jobs(work, self.job_records, self.blobs, bodies, most=8)

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[Jobs]:
        """The jobs of one more service, which takes up those that were left; the block acts as the local caller."""
        jobs = self.jobs()
        await jobs.start()
        try:
            with acting_as(LOCAL):
                yield jobs
        finally:
            await jobs.close()

    async def none_is_open(self) -> None:
        """Return when no job is open: an end is seen a moment before it is on the disk, and the job is open no more."""
        async with asyncio.timeout(20):
            while await self.job_records.opened():
                await asyncio.sleep(0.01)

    async def done(self) -> JobRecord:
        """What comes of a job that is accepted."""
        async with self.working() as jobs:
            record = await ended(jobs, (await jobs.accept(BODY)).record.id)
            await self.none_is_open()
            assert jobs.open().total() == 0
        assert [event.kind for event in record.events].count("done") == 1
        assert record.events[-1].data["state"] == record.state
        return record


async def ended(jobs: Jobs, identifier: str) -> JobRecord:
    """A job once it is over, of whichever holder; one that never is, is for this time-out."""
    async with asyncio.timeout(60):
        while True:
            with acting_as(LOCAL):
                job = await jobs.find(identifier)
            if job.is_over:
                return job.record
            await asyncio.sleep(0.02)


def failed_by(record: JobRecord) -> str:
    assert record.state == "failed"
    assert record.error is not None
    return record.error["code"]
