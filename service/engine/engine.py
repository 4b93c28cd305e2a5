"""The engine: the parts that the routes call, made and connected, with their startup and shutdown."""

from __future__ import annotations

import asyncio
from functools import partial

from service.fairness.shares import Shares
from service.fairness.turns import Fairness
from service.identity.keyring import Keyring as ApiKeyring
from service.identity.tenancy import Tenancy
from service.process.memory_limit import MemoryLimit
from service.process.periodic import Interruption
from service.readiness.readiness import Readiness
from service.sandbox.control import Ready
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from service.store.attempts import Crashes
from service.store.blobs import Blobs, Bodies
from service.store.job_records import JobRecords
from service.store.location import open_store
from service.store.nearest import Nearest
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.store.repeats import Repeats
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.compiler_build import build
from tensorkiln.errors import NotFoundError, UnavailableError
from tensorkiln.trust import LEVELS

from .answers import Answers
from .compiles import Compiles
from .farm.engine import FarmEngine
from .farm.ledger import Ledger
from .farm.roster import Roster
from .job_work import JobWork
from .jobs import Jobs
from .local import LocalEngine
from .order import CompileEngine
from .reader import Reader
from .submissions import Submissions


class Engine:
    """The compiler with its store. Methods that routes call raise only TensorkilnError.

    `reader` reads requests and writes answers, `compiler` compiles; None for a farm.
    """

    def __init__(
        self,
        settings: Settings,
        reader: Sandbox,
        compiler: Sandbox | None,
        api_keys: ApiKeyring,
        memory_limit: MemoryLimit,
        *,
        is_private: bool = False,
    ) -> None:
        self._sandboxes = {reader, compiler or reader}
        self._is_private = is_private
        self._is_closing = False
        self.ending = Interruption()
        """Set at shutdown, to end the requests that still wait for an answer."""
        store = open_store(settings.store)
        records, blobs = Records(store), Blobs(store)
        self.blobs = blobs
        self.keyring = Keyring(settings.keys)
        self.notary = notary = Notary(
            self.keyring, settings.worker, settings.require_isolation if compiler is None else "process"
        )
        self._programs = programs = Programs(records, blobs, notary)
        self.tenancy = tenancy = Tenancy(api_keys, records, settings.salt)
        self._farm: FarmEngine | None = None
        if compiler is None:
            ledger, roster = Ledger(records, notary), Roster(store, records, notary)
            is_near = store.root is not None
            deadline_s = settings.compile_deadline_s
            self._farm = FarmEngine(ledger, roster, programs, blobs, deadline_s=deadline_s, is_near=is_near)
            self._back_end: CompileEngine = self._farm
            lacks_workers, width = roster.lacks_workers, partial(roster.width, settings.width, settings.farm_ahead)
        else:
            self._back_end = LocalEngine(compiler, settings.limits, blobs, programs, Crashes(records, notary))
            lacks_workers = width = None
        self.fairness = fairness = Fairness(settings, api_keys.tenant, width)
        self._readiness = Readiness(
            reader, compiler, store, settings, lambda: fairness.compiles.load().oldest_s, lacks_workers
        )
        nearest = Nearest(records, programs.entry)
        self._compiles = Compiles(self._back_end, fairness.compiles, tenancy, programs, nearest)
        reading = Reader(reader, compiler or reader, settings.limits, fairness.short_tasks, tenancy, blobs)
        epoch = f"{build().build_id}\n{settings.salt}"
        repeats = Repeats(records, blobs, epoch, settings.answer_memory_mib << 20, notary)
        seals = compiler is not None
        self.answers = Answers(reading, self._compiles, repeats, tenancy, fairness, notary, seals)
        job_records, bodies = JobRecords(records), Bodies(blobs, lambda: tenancy.owner, memory_limit)
        intake = Shares(settings.intake_mib << 20)
        work = JobWork(self.answers.make, job_records, blobs, bodies, fairness.jobs, intake, memory_limit)
        self.jobs = Jobs(work, job_records, blobs, bodies, settings.width + settings.queue)
        self.submissions = Submissions(self.jobs, self.answers, fairness, tenancy, blobs, records, notary)

    async def start(self) -> Ready:
        """Start everything; the weakest isolation of all sandboxes. UnavailableError when a check fails."""
        ready = min(
            await asyncio.gather(*(sandbox.start() for sandbox in self._sandboxes)),
            key=lambda each: LEVELS.index(each.level),
        )
        if self._farm is not None:
            # Workers compile: programs that were compiled with less isolation than this are not trusted.
            ready = Ready(ready.baseline_mib, mechanisms=(), level=self.notary.isolation)
        else:
            # Before any job runs: programs are signed with this level, and stored programs need at least this level.
            self.notary.isolation = ready.level
            self.keyring.signer()
        await self._readiness.require_start(is_private=self._is_private)
        if self._farm is not None:
            await self._farm.start()
        await self.jobs.start()
        return ready

    async def close(self) -> None:
        self.announce_end()
        for part in (self._readiness, self.jobs, self.submissions, self.answers, self._compiles, self._back_end):
            await part.close()
        await asyncio.gather(*(sandbox.close() for sandbox in self._sandboxes))

    def announce_end(self) -> None:
        """Report the service as not ready from now on. Requests are still served."""
        self._is_closing = True

    def drain(self) -> None:
        """Report the service as not ready, accept no more jobs, and end every wait for one."""
        self.announce_end()
        self.jobs.drain()

    async def program(self, digest: str) -> Entry:
        """The entry of a program that the caller may read. NotFoundError when there is none."""
        entry = await self._programs.entry(digest) if await self.tenancy.allows(digest) else None
        if entry is None:
            raise NotFoundError(f"There is no program {digest}.")
        return entry

    async def check(self) -> None:
        """Raise UnavailableError when the service shuts down, or when a part that a compile needs fails."""
        if self._is_closing:
            raise UnavailableError("The service is shutting down.")
        await self._readiness.require()
