"""The engine: the parts that the routes call, made and connected, with their startup and shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial

from service.fairness.shares import Shares
from service.fairness.turns import Fairness
from service.identity.keyring import Keyring as ApiKeyring
from service.identity.tenancy import Tenancy
from service.process.memory_limit import MemoryLimit
from service.process.periodic import Interruption
from service.readiness.readiness import Readiness
from service.sandbox.control import Ready
from service.sandbox.levels import Level
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

from .answers import Answers
from .compiles import Compiles
from .explain import Tunings
from .farm.engine import FarmEngine
from .farm.ledger import Ledger
from .farm.roster import Roster
from .farm.statements import Statements
from .job_work import JobWork
from .jobs import Jobs
from .local import LocalEngine
from .order import CompileEngine
from .questions import Questions
from .reader import Reader
from .submissions import Submissions


@dataclass(eq=False, kw_only=True)
class Engine:
    """The compiler with its store, made by `engine_of`. Methods that routes call raise only TensorkilnError."""

    answers: Answers
    questions: Questions
    jobs: Jobs
    submissions: Submissions
    compiles: Compiles
    fairness: Fairness
    tenancy: Tenancy
    blobs: Blobs
    programs: Programs
    keyring: Keyring
    notary: Notary
    back_end: CompileEngine
    sandboxes: Collection[Sandbox]
    readiness: Readiness
    is_farm: bool
    is_private: bool
    ending: Interruption = field(default_factory=Interruption)
    """Set at shutdown, to end the requests that still wait for an answer."""
    _is_closing: bool = False

    async def start(self) -> Ready:
        """Start everything; the weakest isolation of all sandboxes. UnavailableError when a check fails."""
        ready = min(
            await asyncio.gather(*(sandbox.start() for sandbox in self.sandboxes)),
            key=lambda each: Level(each.level).strength,
        )
        if self.is_farm:
            # Workers compile: programs that were compiled with less isolation than this are not trusted.
            ready = replace(ready, level=self.notary.isolation, mechanisms=(), shortcomings=())
        else:
            # Before any job runs: programs are signed with this level, and stored programs need at least this level.
            self.notary.isolation = ready.level
            self.keyring.signer()
        await self.readiness.require_start(is_private=self.is_private)
        await self.back_end.start()
        await self.jobs.start()
        return ready

    async def close(self) -> None:
        self.announce_end()
        for part in (self.readiness, self.jobs, self.submissions, self.answers, self.compiles, self.back_end):
            await part.close()
        await asyncio.gather(*(sandbox.close() for sandbox in self.sandboxes))

    def announce_end(self) -> None:
        """Report the service as not ready from now on. Requests are still served."""
        self._is_closing = True

    def drain(self) -> None:
        """Report the service as not ready, accept no more jobs, and end every wait for one."""
        self.announce_end()
        self.jobs.drain()

    async def program(self, digest: str) -> Entry:
        """The entry of a program that the caller may read. NotFoundError when there is none."""
        entry = await self.programs.entry(digest) if await self.tenancy.allows(digest) else None
        if entry is None:
            raise NotFoundError(f"There is no program {digest}.")
        return entry

    async def check(self) -> None:
        """Raise UnavailableError when the service shuts down, or when a part that a compile needs fails."""
        if self._is_closing:
            raise UnavailableError("The service is shutting down.")
        await self.readiness.require()


def engine_of(
    settings: Settings,
    reader: Sandbox,
    compiler: Sandbox | None,
    api_keys: ApiKeyring,
    memory_limit: MemoryLimit,
    *,
    is_private: bool = False,
) -> Engine:
    """The engine of a service. `reader` reads requests and writes answers, `compiler` compiles; None for a farm."""
    is_farm = compiler is None
    store = open_store(settings.store_location)
    records, blobs = Records(store), Blobs(store)
    keyring = Keyring(settings.keys_directory)
    notary = Notary(keyring, settings.worker, settings.require_isolation if is_farm else "process")
    programs = Programs(records, blobs, notary)
    tenancy = Tenancy(api_keys, records, settings.salt)
    back_end: CompileEngine
    if compiler is None:
        statements = Statements(notary)
        ledger, roster = Ledger(records, statements), Roster(store, records, statements)
        is_near = store.root is not None
        deadline_s = settings.compile_deadline_s
        back_end = FarmEngine(ledger, roster, programs, blobs, deadline_s=deadline_s, is_near=is_near)
        lacks_workers, width = roster.lacks_workers, partial(roster.width, settings.width, settings.farm_ahead)
    else:
        back_end = LocalEngine(compiler, settings.limits, blobs, programs, Crashes(records, notary))
        lacks_workers = width = None
    fairness = Fairness(settings, api_keys.tenant, width)
    readiness = Readiness(
        reader,
        compiler,
        store,
        records,
        disk_floor_mib=settings.disk_floor_mib,
        queue_age_s=settings.ready_queue_age_s,
        oldest_s=lambda: fairness.compiles.load().oldest_s,
        lacks_workers=lacks_workers,
    )
    nearest, tunings = Nearest(records, programs.has), Tunings(tenancy, programs)
    compiles = Compiles(back_end, fairness.compiles, tenancy, programs, nearest, tunings)
    reading = Reader(reader, compiler or reader, settings.limits, fairness.short_tasks, tenancy, blobs)
    epoch = f"{build().build_id}\n{settings.salt}"
    repeats = Repeats(records, blobs, epoch, settings.answer_memory_mib << 20, notary)
    answers = Answers(reading, compiles, repeats, tenancy, fairness, notary, not is_farm)
    job_records, bodies = JobRecords(records), Bodies(blobs, lambda: tenancy.owner, memory_limit)
    intake = Shares(settings.intake_mib << 20)
    work = JobWork(answers.make, job_records, blobs, bodies, fairness.jobs, intake, memory_limit)
    jobs = Jobs(work, job_records, blobs, bodies, settings.width + settings.queue)
    return Engine(
        answers=answers,
        questions=Questions(reading, fairness, tenancy, answers, programs, nearest, tunings),
        jobs=jobs,
        submissions=Submissions(jobs, answers, fairness, tenancy, blobs, records, notary),
        compiles=compiles,
        fairness=fairness,
        tenancy=tenancy,
        blobs=blobs,
        programs=programs,
        keyring=keyring,
        notary=notary,
        back_end=back_end,
        sandboxes={reader, compiler or reader},
        readiness=readiness,
        is_farm=is_farm,
        is_private=is_private,
    )
