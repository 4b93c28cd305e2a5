"""A service and a worker of a simulated farm, built from production classes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final, cast

from service.action import Action
from service.engine.farm.engine import FarmEngine
from service.engine.farm.ledger import Ledger
from service.engine.farm.roster import Roster
from service.engine.job_work import JobWork
from service.engine.jobs import Jobs
from service.engine.order import OnProgress, Order, Wanted
from service.fairness.lane import Bounds, FairLane
from service.fairness.shares import Shares
from service.fairness.turns import Turns
from service.identity.caller import LOCAL, acting_as
from service.identity.register import TenantRecord
from service.process.memory_limit import MemoryLimit
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from service.store.blobs import Blobs, Bodies, digest_of
from service.store.job_records import JobRecords
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.trust.notary import Notary, with_signatures
from service.wire.body import Body
from service.worker.bench import Bench

from .compiler import Compiler
from .keys import KEYS
from .process import Process
from .store import Contents

REQUIRED: Final = "landlock+seccomp"
"""The isolation level that services require."""
_DEADLINE_S: Final = 60.0
_MIB: Final = 1 << 20
_SETTINGS: Final = Settings(home=Path("nowhere"), worker="worker", concurrency=1)
_MEMORY: Final = MemoryLimit(1 << 20)


def action(graph: str, build: str) -> Action:
    """The action that compiles the graph with this digest by this build."""
    return Action(1, build, graph, {"fast_math": False}, "", 1, {"kind": "cpu", "features": ["avx"]})


class Service:
    """The job queue and the farm engine of a service; a request is a graph."""

    def __init__(self, process: Process, contents: Contents) -> None:
        self.process = process
        store = contents.of(process)
        records, self._blobs = Records(store), Blobs(store)
        notary = Notary(KEYS, "service", REQUIRED)
        self._programs = Programs(records, self._blobs, notary)
        self._farm = FarmEngine(
            Ledger(records, notary),
            Roster(store, records, notary),
            self._programs,
            self._blobs,
            deadline_s=_DEADLINE_S,
            is_near=False,
        )
        job_records, bodies = JobRecords(records), Bodies(self._blobs, lambda: "", _MEMORY)
        turns = Turns(FairLane(Bounds(process.chance.choice((1, 8)), 64)), lambda _: TenantRecord(), work=False)
        work = JobWork(self._make, job_records, self._blobs, bodies, turns, Shares(64 * _MIB), _MEMORY)
        self.jobs = Jobs(work, job_records, self._blobs, bodies, most=64)

    async def start(self) -> None:
        """Start, and take over the jobs of lost services."""
        await self._farm.start()
        await self.jobs.start()

    async def accept(self, identifier: str, graph: bytes) -> None:
        """Accept a request as a job; it must end once this has returned."""
        with acting_as(LOCAL):
            await self.jobs.accept(Body(graph, await digest_of(graph)), identifier=identifier)

    async def stop(self) -> None:
        """Leave, as at SIGTERM."""
        await self.jobs.close()
        await self._farm.close()

    async def _make(self, body: Body, on_progress: OnProgress) -> bytes:
        wanted = Wanted(action(body.digest, self.process.build), body.content, with_dumps=False)
        found = await self._programs.find(wanted.action, with_dumps=False)
        content = await self._blobs.get(found.program) if isinstance(found, Entry) else None
        if not isinstance(found, Entry) or content is None:
            made = await self._farm.make(Order(wanted), on_progress)
            found, content = made.entry, made.program
        answer: dict[str, Any] = {"programs": [json.loads(content)]}
        return with_signatures(json.dumps(answer).encode(), [found.signature])


class Worker:
    """A worker with a simulated compiler."""

    def __init__(self, process: Process, contents: Contents, compiler: Compiler) -> None:
        self.process = process
        self._bench = Bench(_SETTINGS, contents.of(process), KEYS, cast(Sandbox, compiler))
        self._ending = asyncio.Event()

    async def start(self) -> None:
        """Work until `stop` is called."""
        await self._bench.start()
        await self._bench.work(self._ending)

    async def stop(self) -> None:
        """Leave, as at SIGTERM."""
        self._ending.set()
