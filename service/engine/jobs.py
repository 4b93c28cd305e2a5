"""Accepted jobs: recorded before they start, retried until they end, and taken over after a crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
from structlog.contextvars import bind_contextvars

from service import clock
from service.fairness.shares import is_fair
from service.identity.caller import Caller, caller
from service.observe.telemetry import traceparent
from service.process.periodic import Background, Interruption, periodically
from service.store.blobs import Blobs, Bodies
from service.store.claims import BEAT_S
from service.store.job_records import Event, JobRecord, JobRecords
from service.store.location import FullStoreError
from service.wire.body import Body
from tensorkiln.errors import LostWorkerError, NotFoundError, RateLimitedError, UnavailableError

from .job import Job
from .job_work import DEFECT, MAX_ATTEMPTS, JobWork, kept

TELL_S: Final = 0.5
"""Seconds between writes of the progress of jobs, and between looks at a job of another service."""
CANCEL_S: Final = 10.0
"""Seconds that a cancellation waits for the store to accept the end of the job."""

LOOK_S: Final = 0.5
"""Seconds that a look at a job waits for the store to say whether another service has ended it."""

_log = structlog.get_logger()


class Jobs:
    """The jobs of one service, at most `most` of them open; `work` carries them out. Services may share the store."""

    def __init__(self, work: JobWork, records: JobRecords, blobs: Blobs, bodies: Bodies, most: int) -> None:
        self._work = work
        self._records = records
        self._blobs = blobs
        self._bodies = bodies
        self._most = most
        self._owner = clock.token_hex(16)
        self._jobs: dict[str, Job] = {}
        # Jobs that are accepted but not started yet, with their tenants.
        self._accepting: dict[str, str] = {}
        self._others: dict[str, str] = {}
        # Jobs for which the store failed in an earlier round. They come last.
        self._put_off: set[str] = set()
        self._watching = Background()
        self.is_closing = Interruption()
        self._is_closed = False

    async def start(self) -> None:
        """Take over the jobs of lost services, now and periodically. UnavailableError when they cannot be listed."""
        try:
            await self._take_over_jobs()
        except FullStoreError as error:
            _log.error("the store is full: jobs of lost services are taken over later", reason=error.message)
        published: dict[str, int] = {}
        watch = self._watching.see_to
        watch(periodically("write its heartbeat", BEAT_S, self._send_heartbeat))
        watch(periodically("take over jobs of lost services", BEAT_S, self._take_over_jobs))
        watch(periodically("write the progress of its jobs", TELL_S, lambda: self._publish(published)))

    async def known(self, identifier: str) -> Job | None:
        """The job with this id, of any caller and any service; None when there is none."""
        job, record = self._jobs.get(identifier), None
        if job is None:
            record = await self._records.find(identifier)
        elif not job.record.has_ended:
            # Another service may have ended it, which `_take_over_jobs` may not have seen yet.
            with suppress(UnavailableError, TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    record = await self._records.ended(identifier)
        return Job(record) if record is not None else job

    async def accept(self, body: Body, answer: bytes | None = None, identifier: str | None = None) -> Job:
        """Accept a job for a request; once this returns, it survives a crash. With its `answer`, it is over at once.

        `identifier` is an unused id for it. UnavailableError when too many jobs are open, or the service shuts down;
        RateLimitedError when the tenant has too many.
        """
        if self.is_closing.is_set():
            raise UnavailableError("The service is shutting down.")
        if answer is None:
            self._require_room(caller())
        identifier, who = identifier or clock.token_hex(16), caller()
        bind_contextvars(job=identifier)
        # It counts as open at once, and its record is not taken for an orphan before it starts. The caller may be
        # cancelled meanwhile.
        self._accepting[identifier] = who.tenant
        try:
            return await self._accepted(identifier, who, body, answer)
        finally:
            del self._accepting[identifier]

    async def _accepted(self, identifier: str, who: Caller, body: Body, answer: bytes | None) -> Job:
        digest = await self._bodies.put(body, durable=answer is None)
        begun = clock.time()
        record = JobRecord(identifier, digest, begun, who.to_record(), owner=self._owner)
        # With its answer, it has no turn to wait for.
        queue_ms = None if answer is None else 0.0
        job = Job(replace(record, trace=traceparent(), body_bytes=len(body.content), queue_ms=queue_ms))
        if answer is not None:
            job.finish("done", **await kept(answer, self._blobs))
            job.stored_end(await self._records.end(job.record))
            return job
        if not self._jobs:
            await self._records.beat(self._owner)
        await self._records.write(job.record)
        self._begin(job)
        return job

    def _require_room(self, who: Caller) -> None:
        """Check the limits of open jobs. That of a tenant is a multiple of the free places: see `is_fair`."""
        taken = len(self._jobs) + len(self._accepting)
        if taken >= self._most:
            raise UnavailableError(
                f"{taken} jobs are open already, which is the limit; send the request again in a moment.",
                details={"waiting": taken, "queue": self._most},
            )
        if not who.tenant or is_fair(taken, taken, self._most):
            return
        tenants = [job.record.caller.get("tenant") for job in self._jobs.values()]
        own = (*tenants, *self._accepting.values()).count(who.tenant)
        if not is_fair(own, taken, self._most):
            raise RateLimitedError(
                f"{own} jobs of your tenant are open, which leaves too little to others; come back in a moment.",
                details={"limit": "open_jobs", "maximum": self._most, "actual": own, "retry_after_s": 1},
            )

    async def find(self, identifier: str) -> Job:
        """The job with this id, of any service. NotFoundError when there is none that the caller may see."""
        job = await self.known(identifier)
        if job is None or not job.is_for(caller()):
            raise NotFoundError(f"There is no job {identifier}.")
        bind_contextvars(job=job.record.id)
        return job

    async def cancel(self, identifier: str) -> Job:
        """Cancel a job unless it has ended. Its compile is cancelled too, unless another request waits for it.

        UnavailableError when the store does not accept the end within CANCEL_S; the job is cancelled all the same.
        """
        job = await self.find(identifier)
        if job.is_over:
            return job
        if job.task is None:
            job.finish("cancelled")
            job.stored_end(await self._records.end(job.record))
            return job
        if not job.is_cancelled:
            job.is_cancelled = True
            job.task.cancel()
        if not await job.end(CANCEL_S):
            raise UnavailableError("The job is being cancelled, but its end is not in the store yet; look again later.")
        return job

    async def events(self, identifier: str, last: str) -> AsyncGenerator[Event]:
        """The events of a job after the one with the id `last`, until the job ends or this service shuts down."""
        job = await self.find(identifier)
        while True:
            # Read before the events, so that none is missed.
            changed, is_over = job.changed, job.is_over
            for event in job.events_after(last):
                last = event.id
                yield event
            if is_over or self.is_closing.is_set():
                return
            if job.task is not None and not job.is_abandoned:
                await changed.wait()
                continue
            # The job is at another service, which writes its progress periodically.
            with suppress(TimeoutError):
                await asyncio.wait_for(self.is_closing.wait(), TELL_S)
            job = await self.find(identifier)

    async def end(self, job: Job, seconds: float) -> Job:
        """Wait for the end of a job, up to `seconds` or until this service shuts down; the job as it is then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self.is_closing.before():
                while not await job.end(TELL_S):
                    with suppress(UnavailableError):
                        # Another service may have it, or have ended it.
                        job = self._jobs.get(job.record.id) or await self.find(job.record.id)
        return job

    def open(self) -> Counter[str]:
        """How many jobs are queued and running here."""
        counted = Counter({"queued": 0, "running": 0})
        counted.update(job.record.state for job in self._jobs.values())
        return counted

    def drain(self) -> None:
        """Accept no more jobs, and end every wait for one."""
        self.is_closing.set()
        for job in self._jobs.values():
            job.notify()

    async def close(self) -> None:
        """Stop, and release the jobs that have not ended, so that another service can take them over."""
        self._is_closed = True
        self.drain()
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._watching.end(), return_exceptions=True)
        with suppress(UnavailableError):
            begun = [each for each, job in self._jobs.items() if job.record.state != "queued"]
            await self._records.release(self._owner, begun)

    def _begin(self, job: Job) -> None:
        self._jobs[job.record.id] = job
        self._run_in_task(job, self._work.run)

    def _run_in_task(self, job: Job, work: Callable[[Job], Awaitable[None]]) -> None:
        async def to_its_end() -> None:
            await work(job)
            self._jobs.pop(job.record.id, None)

        job.task = asyncio.create_task(to_its_end())
        job.task.add_done_callback(lambda task: self._on_task_end(job, task))

    def _on_task_end(self, job: Job, task: asyncio.Task[None]) -> None:
        """Write the end of a job whose task was cancelled or failed by a defect; if that fails too, abandon the job."""
        if job.is_over or self._is_closed:
            return
        if task.cancelled() and task.cancelling():
            if not job.is_cancelled:
                return  # `_drop` cancelled it: another service has ended it
            if not job.record.has_ended:
                job.finish("cancelled")
        else:
            error = None if task.cancelled() else task.exception()
            _log.error("a job was abandoned because of a defect of the service", job=job.record.id, exc_info=error)
            if job.is_failing:
                self._jobs.pop(job.record.id, None)
                job.abandon()
                return
            job.fail(DEFECT.to_problem())
        self._run_in_task(job, self._work.store_end)

    async def _send_heartbeat(self) -> None:
        """Write a heartbeat while this service has jobs. It has its own loop, so that slow work cannot delay it."""
        if self._jobs:
            await self._records.beat(self._owner)

    async def _publish(self, published: dict[str, int]) -> None:
        """Write the progress of running jobs. `published` is the number of events that was written last, by job."""
        under_way = {job.record.id: job for job in self._jobs.values() if job.record.state == "running"}
        for identifier in published.keys() - under_way.keys():
            del published[identifier]
        for identifier, job in under_way.items():
            record = job.record
            if not record.has_ended and published.get(identifier) != len(record.events):
                published[identifier] = len(record.events)
                # A running job may have waited for further turns.
                await self._records.publish(replace(record, queue_ms=job.queue_time.milliseconds))
                if identifier not in self._jobs or job.record.has_ended:
                    await self._records.unpublish(identifier)

    async def _take_over_jobs(self) -> None:
        """Drop jobs that another service has ended, and take over orphans."""
        opened = set(await self._records.opened())
        await self._records.beat(self._owner)
        alive: dict[str, bool] = {}
        self._others = {each: owner for each, owner in self._others.items() if each in opened}
        gone = [each for each, job in self._jobs.items() if each not in opened and not job.is_over]
        left = sorted(opened - self._jobs.keys() - self._accepting.keys())
        looks = {each: partial(self._drop, each) for each in gone}
        looks |= {each: partial(self._take_over, each, alive) for each in left}
        self._put_off &= looks.keys()
        for identifier in sorted(looks, key=self._put_off.__contains__):
            (error,) = await asyncio.gather(looks[identifier](), return_exceptions=True)
            if isinstance(error, UnavailableError):
                # If the store is down, the other jobs would fail too. If only this one fails, it comes last next time.
                self._put_off.add(identifier)
                _log.error(
                    "a job of a lost service could not be taken over; it is tried again",
                    job=identifier,
                    reason=error.message,
                )
                return
            self._put_off.discard(identifier)
            if error is not None:  # A defect in one job must not stop the others.
                _log.error("a job cannot be run", job=identifier, exc_info=error)

    async def _take_over(self, identifier: str, alive: dict[str, bool]) -> None:
        if len(self._jobs) >= self._most or await self._has_living_owner(identifier, alive):
            return  # another service has it, or this one has no room
        record = await self._records.orphan(identifier, self._owner)
        if record is None:
            return
        if record.lost >= MAX_ATTEMPTS:
            lost = LostWorkerError(f"{MAX_ATTEMPTS} services were lost over this job.")
            await self._records.end(record.failed(lost.to_problem()))
        else:
            _log.warning("a job of a lost service was taken over", job=identifier, attempt=record.attempt)
            self._begin(Job(record))

    async def _has_living_owner(self, identifier: str, alive: dict[str, bool]) -> bool:
        """Whether another service that is alive has the job. `alive` caches the owners of this round."""
        owner = self._others.get(identifier) or await self._records.owner(identifier)
        if owner == self._owner:
            return False  # this service has abandoned it
        if owner not in alive:
            alive[owner] = await self._records.is_alive(owner)
        self._others[identifier] = owner
        if not alive[owner]:
            del self._others[identifier]
        return alive[owner]

    async def _drop(self, identifier: str) -> None:
        record = await self._records.find(identifier)
        job = self._jobs.get(identifier)
        if job is None or job.task is None or record is None or not record.has_ended:
            return
        job.task.cancel()
        await asyncio.wait([job.task])
        job.stored_end(record)
        self._jobs.pop(identifier, None)
        # This service may have written progress after the job ended.
        await self._records.unpublish(identifier)
