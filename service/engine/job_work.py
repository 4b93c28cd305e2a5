"""Carries out a job from its start to its end, with retries while the infrastructure fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import structlog
from structlog.contextvars import bind_contextvars

from service.fairness.queue_time import begin_queue_time, queue_time
from service.fairness.shares import Shares
from service.fairness.turns import Turns
from service.identity.caller import Caller, acting_as
from service.observe.telemetry import continuing
from service.process.memory_limit import MemoryLimit
from service.store.blobs import Blobs, Bodies
from service.store.job_records import JobRecord, JobRecords
from service.store.programs import path_of
from service.store.records import Records
from service.trust.notary import Notary, signatures_of
from service.wire.body import Body
from tensorkiln.errors import (
    InfrastructureError,
    LostWorkerError,
    RateLimitedError,
    TensorkilnError,
    UnavailableError,
)

from .job import Job
from .order import OnProgress, Progress

MAX_ATTEMPTS: Final = 5
"""Limit of services and workers lost over a job, plus its compiles that the infrastructure failed."""
_FIRST_PAUSE_S: Final = 0.2
_MAX_PAUSE_S: Final = 5.0
_PAUSE_AFTER_A_COMPILE_S: Final = 5.0
"""Seconds to wait, times the lost attempts: a lost compile costs far more than a retry of the store."""

ROOM_S: Final = 10.0
"""Seconds that a job waits for memory at most, as it holds a turn meanwhile."""

T = TypeVar("T")
Work: TypeAlias = Callable[[Body, OnProgress], Awaitable[bytes]]

DEFECT: Final = TensorkilnError("The service has a defect; its log tells where.")

_log = structlog.get_logger()


@dataclass(eq=False)
class JobWork:
    """Carries out jobs: `work` turns a request into its answer, and is retried after an InfrastructureError.

    A job starts when `memory` has room for its request, and waits up to ROOM_S for `memory_limit`.
    """

    _work: Work
    _records: JobRecords
    _blobs: Blobs
    _bodies: Bodies
    _turns: Turns
    _memory: Shares
    _memory_limit: MemoryLimit

    async def run(self, job: Job) -> None:
        """Do a job on behalf of its caller, and write how it has ended."""
        who = Caller.from_record(job.record.caller)
        # A job that was taken over does not run in the context of its request.
        bind_contextvars(job=job.record.id, tenant=who.tenant)
        job.queue_time = begin_queue_time()
        with acting_as(who), continuing(job.record.trace):
            outcome = await self._retrying(lambda: self._in_turn(job))
        if outcome is not None:
            state, changes = outcome
            job.finish(state, **changes)
            await self.store_end(job)

    async def store_end(self, job: Job) -> None:
        """Write the end of a job, with retries until the store accepts it."""
        job.stored_end(await self._retrying(lambda: self._records.end(job.record)))

    async def _in_turn(self, job: Job) -> tuple[str, dict[str, Any]] | None:
        """Do the work in its turn; its outcome, None when another service ended the job while it was queued."""
        record = job.record
        # Before the turn: a job with a turn that waits for memory would keep a place from others.
        room = self._memory.room(str(record.caller.get("tenant", "")), record.body_bytes)
        async with room, self._turns.turn(0):
            job.start()
            ended = await self._retrying(lambda: self._records.renew(job.record))
            if ended is None:
                return await self._outcome(job)
            job.stored_end(ended)
            return None

    async def _outcome(self, job: Job) -> tuple[str, dict[str, Any]]:
        """Do the work, with retries while the infrastructure fails; the state and changes of the record.

        Retries go on for as long as the store or the farm is down; only lost attempts count against MAX_ATTEMPTS.
        """
        pause, vain = _FIRST_PAUSE_S, job.record.lost
        has_begun = False

        def report(progress: Progress) -> None:
            nonlocal has_begun
            # A compile is of one target. A retry is announced before it starts.
            has_begun = has_begun or (progress.get("target") is not None and "attempt" not in progress)
            job.report(progress)

        while True:
            has_begun = False
            working = asyncio.create_task(self._answer(job, report))
            try:
                await asyncio.wait({working})
            finally:
                working.cancel()
            # This job was not cancelled, else this line would not be reached: some other part cancelled the work.
            error = LostWorkerError("The work was given up.") if working.cancelled() else working.exception()
            if error is None:
                return working.result()
            if isinstance(error, LostWorkerError):
                vain += int(error.details.get("attempts", 0)) or 1
            elif isinstance(error, UnavailableError) and has_begun:
                vain += 1
                pause = vain * _PAUSE_AFTER_A_COMPILE_S
            may_pass = isinstance(error, InfrastructureError | RateLimitedError)
            if not may_pass or vain >= MAX_ATTEMPTS:
                return "failed", {"error": _problem(job, error)}
            await job.queue_time.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    async def _answer(self, job: Job, report: OnProgress) -> tuple[str, dict[str, Any]]:
        # To be read, it is in memory twice: see `Bodies`.
        async with self._memory_limit.room(2 * job.record.body_bytes, ROOM_S):
            body = await self._bodies.get(job.record.body)
        if body is None:
            # Not raised: a retry would not bring the request back.
            lost = UnavailableError("The request of this job was lost or damaged in the store; send it again.")
            return "failed", {"error": lost.to_problem()}
        answer = await self._work(body, report)
        return "done", await kept(answer, self._blobs)

    async def _retrying(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Retry while the store or the turns refuse: an accepted job is not dropped for that."""
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return await attempt()
            except (UnavailableError, RateLimitedError) as error:
                _log.error("the attempt of a job was refused; it is tried again", reason=error.message)
                await queue_time().sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE_S)


def _problem(job: Job, error: BaseException) -> dict[str, Any]:
    if isinstance(error, TensorkilnError):
        return error.to_problem()
    _log.error("a job failed because of a defect of the service", job=job.record.id, exc_info=error)
    return DEFECT.to_problem()


async def kept(answer: bytes, blobs: Blobs) -> dict[str, Any]:
    """Store `answer` durably; the fields of the job's record that name it, its programs and its blobs."""
    signed = [each.record for each in signatures_of(answer) if each is not None]
    named = (digest for each in signed for digest in (each.program, *each.artifacts, *each.stages.values()))
    return {
        "answer": await blobs.put(answer, durable=True),
        "programs": tuple(dict.fromkeys(each.action for each in signed)),
        "blobs": tuple(dict.fromkeys(named)),
    }


async def is_lost(record: JobRecord, blobs: Blobs, records: Records, notary: Notary) -> bool:
    """Whether a job is done, and its answer or something the answer names is missing, damaged or not trusted."""
    if record.answer is None:
        return False
    answer = await blobs.get(record.answer)
    if answer is None or not notary.believes_answer(answer):
        return True
    has_blobs = await blobs.holds(record.blobs)
    return not (has_blobs and await records.in_use([path_of(program) for program in record.programs]))
