"""Builds an engine and connects its parts: the only module that knows all of them."""

from __future__ import annotations

from functools import partial

from service.fairness.shares import Shares
from service.fairness.turns import Fairness
from service.identity.keyring import Keyring as ApiKeyring
from service.identity.tenancy import Tenancy
from service.process.memory_limit import MemoryLimit
from service.readiness.readiness import Readiness
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from service.store.attempts import Crashes
from service.store.blobs import Blobs, Bodies
from service.store.job_records import JobRecords
from service.store.location import directory_of, open_store
from service.store.nearest import Nearest
from service.store.programs import Programs
from service.store.records import Records
from service.store.repeats import Repeats
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.compiler_build import build

from .answers import Answers
from .compiles import Compiles
from .engine import Engine
from .explain import Explain, Misses
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
from .tunings import Tunings


def engine_of(
    settings: Settings,
    reader: Sandbox,
    compiler: Sandbox | None,
    api_keys: ApiKeyring,
    memory_limit: MemoryLimit,
    *,
    is_private: bool = False,
) -> Engine:
    """The engine of a service with these settings.

    `reader` is the sandbox that reads requests and writes answers, `compiler` the one that compiles; None for a farm.
    """
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
        is_near = directory_of(store) is not None
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
    misses, tunings = Misses(Nearest(records, programs.has), tenancy), Tunings(tenancy, programs)
    compiles = Compiles(back_end, fairness.compiles, tenancy, programs, misses, tunings)
    reading = Reader(reader, compiler, settings.limits, fairness.short_tasks, tenancy, blobs)
    epoch = f"{build().build_id}\n{settings.salt}"
    repeats = Repeats(records, blobs, epoch, settings.answer_memory_mib << 20, notary)
    answers = Answers(reading, compiles, repeats, tenancy, fairness, notary, readiness, seals=not is_farm)
    job_records, bodies = JobRecords(records), Bodies(blobs, lambda: tenancy.owner, memory_limit)
    intake = Shares(settings.intake_mib << 20)
    work = JobWork(answers.make, job_records, blobs, bodies, fairness.jobs, intake, memory_limit)
    jobs = Jobs(work, job_records, blobs, bodies, settings.width + settings.queue)
    return Engine(
        answers=answers,
        questions=Questions(reading, fairness, tenancy, answers, Explain(tenancy, programs, misses, tunings)),
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
