"""What the routes call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from structlog.contextvars import bind_contextvars

from service import clock
from service.fairness.queue_time import telling_queue_time
from service.fairness.shares import Shares
from service.fairness.turns import Fairness
from service.http.body import Body
from service.http.hit_reasons import SAME_REQUEST
from service.identity.keyring import Keyring as ApiKeyring
from service.identity.tenancy import Tenancy
from service.observe.instruments import count_cache
from service.process.memory_limit import MemoryLimit
from service.process.shutdown import Shutdown
from service.readiness.readiness import Readiness
from service.sandbox.control import Ready
from service.sandbox.frames import Message
from service.sandbox.levels import Level
from service.sandbox.sandbox import Sandbox
from service.sandbox.spending import Spending
from service.settings import Settings
from service.store.blobs import Blobs
from service.store.bodies import Bodies
from service.store.crashes import Crashes
from service.store.job_records import JobRecords
from service.store.location import open_store
from service.store.nearest import Nearest
from service.store.programs import Programs
from service.store.records import Records
from service.store.repeats import Repeat, Repeats
from service.trust.attach import with_signatures
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.compiler_build import build
from tensorkiln.errors import TensorkilnError, UnavailableError
from tensorkiln.trust import SignedRecord

from .compiles import Compiled, Compiles
from .explain import explain
from .farm.engine import FarmEngine
from .flights import Flights
from .job import Job
from .job_work import JobWork, Tell
from .jobs import Jobs
from .known_crashes import KnownCrashes
from .local import LocalEngine
from .lookup import Answered, Asked, Lookup, to_render
from .misses import Misses
from .news import about_target, of_no_target
from .order import Rendered
from .pointers import in_user_terms
from .protocol import CompileEngine
from .reading import of_actions, reading, where_to_read
from .reproducer import needs_reproducer, with_reproducer
from .returned import Described, Prepared, Split, believable, believed, rendered
from .submissions import Submissions
from .tunings import Tunings

News: TypeAlias = dict[str, Any]
T = TypeVar("T")


class Engine:
    """The compiler with its store. Every method raises TensorkilnError alone.

    Requests are read, and answers written, in `reader`; graphs are compiled in `compiler`, and without one by a farm.
    One that `is_private` takes requests while it sees whether everything works, and answers none before it has seen.
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
        self._settings = settings
        self._is_private = is_private
        self._is_farm = compiler is None
        self._reader = reader
        self._compiler = compiler
        self._store = open_store(settings.store_location)
        self._records = Records(self._store)
        self.blobs = Blobs(self._store)
        self.keyring = Keyring(settings.keys_directory)
        self.notary = Notary(self.keyring, settings.worker, "process")
        self.programs = Programs(self._records, self.blobs, self.notary)
        epoch = f"{build().build_id}\n{settings.salt}"
        self._repeats = Repeats(self._records, self.blobs, epoch, settings.answer_memory_mib << 20, self.notary)
        self.tenancy = Tenancy(api_keys, self._records, settings.salt)
        width = (lambda: self._engine.width(settings.width)) if self._is_farm else None
        self.fairness = Fairness(settings, api_keys.tenant, width)
        crashes = Crashes(self._records, self.notary)
        self._engine: CompileEngine
        if compiler is None:
            self.notary.isolation = settings.require_isolation
            farm = (self._store, self._records, self.blobs, self.programs, self.notary)
            self._engine = FarmEngine.on(settings, *farm)
        else:
            self._engine = LocalEngine(compiler, settings.limits, self.blobs, self.programs, crashes)
        self._misses = Misses(Nearest(self._records, self._is_stored), self.tenancy)
        stored = (self.tenancy, self.blobs, self.programs)
        self._tunings = Tunings(self.tenancy, self.programs)
        self.compiles = Compiles(self._engine, self.fairness.compiles, *stored, self._misses, self._tunings)
        self._answers: Flights[bytes, News] = Flights()
        self._crashed = KnownCrashes()
        job_records = JobRecords(self._records)
        most = settings.width + settings.queue
        memory = Shares(settings.intake_mib << 20)
        bodies = Bodies(self.blobs, lambda: self.tenancy.owner, memory_limit)
        work = JobWork(self._make, job_records, self.blobs, bodies, self.fairness.jobs, memory, memory_limit)
        self.jobs = Jobs(work, job_records, self.blobs, bodies, most)
        self._submissions = Submissions(self.jobs, self.blobs, self._records, self.notary)
        self._readiness = Readiness(
            reader,
            compiler,
            self._store,
            self._records,
            disk_floor_mib=settings.disk_floor_mib,
            queue_age_s=settings.ready_queue_age_s,
            oldest_s=lambda: self.fairness.compiles.load().oldest_s,
            lacks_workers=self._engine.lacks_workers,
        )
        self._is_closing = False
        self.verdict: asyncio.Future[None]
        """Whether everything works, once it has started: UnavailableError when it must not go on."""
        self.ending = Shutdown()
        """Those who wait for an answer are let go."""

    async def start(self) -> Ready:
        """Start the fork servers and see that everything works; what holds for the jobs of all.

        A private service has only begun to see when this returns.
        """
        ready = min(
            await asyncio.gather(*(sandbox.start() for sandbox in self._sandboxes)),
            key=lambda each: Level(each.level).strength,
        )
        if self._is_farm:
            # What compiles is a worker; of those, what is less confined is not believed.
            ready = replace(ready, level=self.notary.isolation, mechanisms=(), shortcomings=())
        else:
            # Before any job is taken up: what it compiles is signed with this level, what it finds has to have it.
            self.notary.isolation = ready.level
            self.keyring.signer()
        self.verdict = self._readiness.begin()
        if not self._is_private:
            await self.verdict
        await self._engine.start()
        await self.jobs.start()
        return ready

    async def close(self) -> None:
        """Cancel what is under way and end every process."""
        self._is_closing = True
        await self._readiness.close()
        await self.jobs.close()
        await self._submissions.close()
        await self._answers.close()
        await self.compiles.close()
        await self._engine.close()
        await asyncio.gather(*(sandbox.close() for sandbox in self._sandboxes))

    def announce_end(self) -> None:
        """From now on the service does not call itself ready; whoever has not heard of it is served."""
        self._is_closing = True

    def drain(self) -> None:
        """From now on the service accepts no job either, and holds no answer back."""
        self.announce_end()
        self.jobs.drain()

    async def check(self) -> None:
        """UnavailableError when the service is shutting down, or a part of it fails that a compile needs."""
        if self._is_closing:
            raise UnavailableError("The service is shutting down.")
        await self._readiness.require()

    async def repeated(self, body: Body) -> bytes | None:
        """The body of the answer to a request that was made before, byte for byte; None when there is none."""
        found = await self._repeat(body)
        if found is None:
            return None
        await asyncio.shield(self.verdict)
        for _ in found.programs:
            count_cache(SAME_REQUEST.status, SAME_REQUEST.reason)
        return found.answer

    async def compile(self, body: Body, tell: Tell = lambda _: None) -> bytes:
        """The body of the answer to a compile request that is no `repeated` one.

        `tell` gets the stages as they begin: `stage`, and `target`, the position of the target that is compiled for.
        """
        with self.fairness.request():
            return await self._make(body, tell)

    async def submit(self, body: Body, key: str | None = None) -> Job:
        """A job that comes to the answer of a compile request; over already when the request is a repeated one.

        What the caller has sent with this `key` before is the same job. ForbiddenError for a caller who may have
        nothing stored.
        """
        self.tenancy.require_compile()
        begin = partial(self._submitted, body)
        job = await (begin() if key is None else self._submissions.by_key(body, key, begin))
        bind_contextvars(job=job.record.id)
        return job

    async def _submitted(self, body: Body, identifier: str | None = None) -> Job:
        answer = await self.repeated(body)
        if answer is not None:
            return await self._submissions.answered(body, answer)
        with ExitStack() as counted:
            counted.enter_context(self.fairness.request())
            job = await self.jobs.accept(body, identifier=identifier)
            if job.task is not None:
                until_its_end = counted.pop_all()
                job.task.add_done_callback(lambda _: until_its_end.close())
        return job

    async def split(self, body: Body) -> tuple[Body | TensorkilnError, ...]:
        """The compile requests of a batch, each a body or what is wrong with it, in their order."""
        async with self.tenancy.reproducers():
            with self.fairness.request():
                return (await self._run("split", reading(body), body, Split.from_message)).requests

    async def validate(self, body: Body) -> bytes:
        """The body of the answer to a validation."""
        return await self._read("validate", body)

    async def translate(self, body: Body) -> bytes:
        """The body of the answer to the question what graph a module is."""
        return await self._read("translate", body)

    async def _read(self, kind: str, body: Body) -> bytes:
        async with self.tenancy.reproducers():
            with self.fairness.request():
                return (await self._run(kind, reading(body), body, Described.from_message)).answer

    async def explain(self, body: Body) -> bytes:
        """The body of the answer to the question what a compile request would come to."""
        async with self.tenancy.reproducers():
            with self.fairness.request():
                read = partial(Prepared.from_message, salt=self.tenancy.salt)
                prepared = await self._run("prepare", reading(body, of_actions(self.tenancy.salt)), body, read)
        explanation = await explain(
            prepared.actions,
            is_repeated=await self._repeat(body) is not None,
            with_dumps=prepared.dump_stages,
            tenancy=self.tenancy,
            programs=self.programs,
            misses=self._misses,
            tunings=self._tunings,
        )
        return explanation.model_dump_json(by_alias=True).encode()

    @property
    def _sandboxes(self) -> set[Sandbox]:
        return {self._reader, self._compiler or self._reader}

    async def _repeat(self, body: Body) -> Repeat | None:
        if not self.tenancy.reads_store:
            return None
        return await self._repeats.find(self._repeats.key(self.tenancy.request_digest(body.digest)))

    async def _is_stored(self, digest: str) -> bool:
        return await self.programs.entry(digest) is not None

    async def _make(self, body: Body, tell: Tell) -> bytes:
        key = self._repeats.key(self.tenancy.request_digest(body.digest))
        async with self.tenancy.reproducers(), telling_queue_time():
            with self._crashed.told_again(key):
                flight = (key, self.tenancy.equals)
                return await self._answers.join(flight, lambda tell: self._answer(body, key, tell), tell)

    async def _answer(self, body: Body, key: str, tell: Tell) -> bytes:
        salt = self.tenancy.salt
        lookup = Lookup(salt, self.compiles)
        request = reading(body, of_actions(salt))
        asked, found = await self._run("answer", request, body, lookup.read, of_no_target(tell), lookup)
        found = found or await self._compiled(asked, body, tell)
        await asyncio.shield(self.verdict)
        signatures = [each.entry.signature for each in found.compiled]
        blobs = dict.fromkeys(digest for each in found.compiled for digest in each.blobs)
        programs = dict.fromkeys(each.action.digest for each in found.compiled)
        await self.tenancy.grant([*programs, *blobs])
        # What is stored of measurements may be more the next time.
        if programs.keys() == {action.digest for action in asked.prepared.actions}:
            keys = dict.fromkeys(SignedRecord.model_validate_json(each).record.key for each in signatures)
            repeat = with_signatures(found.answers.repeat, signatures)
            # Each program was signed or believed at this level.
            level = self.notary.isolation
            await self._keep(key, Repeat(repeat, tuple(blobs), tuple(programs), tuple(keys), isolation=level))
        return with_signatures(found.answers.answer, signatures)

    async def _compiled(self, asked: Asked, body: Body, tell: Tell) -> Answered:
        renaming = asked.prepared.renaming
        try:
            compiled = await asked.programs(self.compiles, partial(about_target, tell))
        except TensorkilnError as error:
            await asyncio.shield(self.verdict)  # It may fail for the same reason, which says more.
            raise in_user_terms(error, renaming) from None
        answers = compiled[0].rendered
        if answers is None or answers.renaming != renaming:
            return Answered(compiled, await self._render(compiled, renaming, body))
        return Answered(compiled, believable(answers))

    async def _keep(self, key: str, repeat: Repeat) -> None:
        # A service of a farm has no key to seal an answer with, and who may not compile has nothing stored.
        if self._is_farm or not self.tenancy.may_compile:
            self._repeats.remember(key, repeat)
        else:
            await self._repeats.save(key, repeat)

    async def _render(self, compiled: Sequence[Compiled], renaming: bytes, body: Body) -> Rendered:
        programs = to_render(compiled)
        request = Message(programs.header, {**programs.parts, "renaming": renaming})
        return await self._run("render", request, body, partial(rendered, renaming=renaming))

    async def _run(
        self,
        kind: str,
        request: Message,
        body: Body,
        read: Callable[[Message], T],
        tell: Callable[[str], None] = lambda _: None,
        lookup: Lookup | None = None,
    ) -> T:
        """What `read` makes of the answer of a job, whose question is one for `lookup`."""
        respond = None if lookup is None else lookup.respond
        place = where_to_read(body, self._reader, self._compiler)
        try:
            async with self.fairness.short_jobs.turn(len(body.content)) as turn:
                begin = clock.monotonic()
                try:
                    limits, spending = self._settings.limits, Spending(turn.charge)
                    answer = await place.run(kind, request, limits, tell, respond, spending=spending)
                    return await believed(read, answer)
                finally:
                    # Whoever waits for the store keeps no processor from others.
                    turn.cost_s = clock.monotonic() - begin - (0.0 if lookup is None else lookup.waited_s)
        except TensorkilnError as error:
            if not needs_reproducer(error) or not self.tenancy.may_compile:
                raise
            raise await with_reproducer(error, body.content, self.blobs) from None
