"""Turns compile requests into jobs; a request that is sent again with the same key gets the same job."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Final

from structlog.contextvars import bind_contextvars

from service import clock
from service.fairness.turns import Fairness
from service.identity.caller import caller
from service.identity.tenancy import Tenancy
from service.store.blobs import Blobs
from service.store.records import Records
from service.trust.notary import Notary
from service.wire.body import Body

from .answers import Answers
from .flights import Flights
from .job import Job
from .job_work import is_lost
from .jobs import Jobs

HEADER: Final = "Idempotency-Key"
PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
_ID_CHARACTERS: Final = 32
ANSWERED_S: Final = 3600
"""Seconds for which repeats of an answered request share one job. Far less than ended jobs are kept."""


def job_id(body: Body, key: str, again: int = 0) -> str:
    """The id of the job that the current caller has for this body and `key`, after `again` failed jobs."""
    text = json.dumps([caller().to_record(), body.digest, key, again], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:_ID_CHARACTERS]


@dataclass(eq=False)
class Submissions:
    """Submits compile requests to `jobs`. If `answers` has a stored answer, the job is over at once."""

    _jobs: Jobs
    _answers: Answers
    _fairness: Fairness
    _tenancy: Tenancy
    _blobs: Blobs
    _records: Records
    _notary: Notary
    _flights: Flights[Job, None] = field(default_factory=Flights[Job, None], init=False)

    async def submit(self, body: Body, key: str | None = None) -> Job:
        """The job of a compile request, the same for the same body and `key`; over already when its answer is stored.

        ForbiddenError for a caller without the right to compile and store programs.
        """
        self._tenancy.require_compile()
        begin = partial(self._submitted, body)
        job = await (begin() if key is None else self.by_key(body, key, begin))
        bind_contextvars(job=job.record.id)
        return job

    async def by_key(self, body: Body, key: str, begin: Callable[[str], Awaitable[Job]]) -> Job:
        """The caller's job for this body and `key`. If there is none, `begin` makes one with the given id."""
        return await self._flights.join(job_id(body, key), lambda _: self._once(body, key, begin))

    async def close(self) -> None:
        await self._flights.close()

    async def _submitted(self, body: Body, identifier: str | None = None) -> Job:
        answer = await self._answers.repeated(body)
        if answer is not None:
            # All repeats of an answer within ANSWERED_S share one job.
            key = f"{sha256(answer).hexdigest()}.{clock.time() // ANSWERED_S:.0f}"
            return await self.by_key(body, key, partial(self._jobs.accept, body, answer))
        with ExitStack() as counted:
            counted.enter_context(self._fairness.request())
            job = await self._jobs.accept(body, identifier=identifier)
            if job.task is not None:
                until_its_end = counted.pop_all()
                job.task.add_done_callback(lambda _: until_its_end.close())
        return job

    async def _once(self, body: Body, key: str, begin: Callable[[str], Awaitable[Job]]) -> Job:
        for again in count():
            identifier = job_id(body, key, again)
            job = await self._jobs.known(identifier)
            if job is None:
                return await begin(identifier)
            if not await self._is_in_vain(job):
                return job
        raise AssertionError("count() has no end")

    async def _is_in_vain(self, job: Job) -> bool:
        """Whether a job has failed with a retryable error, or its answer is lost."""
        if not job.is_over:
            return False
        error = job.record.error
        if error is not None:
            return bool(error.get("retryable"))
        return await is_lost(job.record, self._blobs, self._records, self._notary)
