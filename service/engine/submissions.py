"""A compile request becomes a job; one that is sent again because nobody knows what became of it is the same job."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
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
from .job_outcome import is_lost
from .jobs import Jobs

HEADER: Final = "Idempotency-Key"
PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
_ID_CHARACTERS: Final = 32
ANSWERED_S: Final = 3600
"""For so long a request that was answered at once is one job. Far shorter than what has ended is kept."""


def job_id(body: Body, key: str, again: int = 0) -> str:
    """The id of the job that the current caller has for this body and `key`, sent `again` after so many in vain.

    The name of the header is that of draft-ietf-httpapi-idempotency-key-header. Another body is another job.
    """
    text = json.dumps([caller().to_record(), body.digest, key, again], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:_ID_CHARACTERS]


class Submissions:
    """Has `jobs` accept what `answers` has no answer to yet."""

    def __init__(
        self,
        jobs: Jobs,
        answers: Answers,
        fairness: Fairness,
        tenancy: Tenancy,
        blobs: Blobs,
        records: Records,
        notary: Notary,
    ) -> None:
        self._jobs = jobs
        self._answers = answers
        self._fairness = fairness
        self._tenancy = tenancy
        self._blobs = blobs
        self._records = records
        self._notary = notary
        self._flights: Flights[Job, None] = Flights()

    async def submit(self, body: Body, key: str | None = None) -> Job:
        """A job that comes to the answer of a compile request; over already when the request is a repeated one.

        What the caller has sent with this `key` before is the same job. ForbiddenError for a caller who may have
        nothing stored.
        """
        self._tenancy.require_compile()
        begin = partial(self._submitted, body)
        job = await (begin() if key is None else self.by_key(body, key, begin))
        bind_contextvars(job=job.record.id)
        return job

    async def by_key(self, body: Body, key: str, begin: Callable[[str], Awaitable[Job]]) -> Job:
        """The job that the caller has for this body and `key`. `begin` makes one with an id, where there is none."""
        return await self._flights.join(job_id(body, key), lambda _: self._once(body, key, begin))

    async def close(self) -> None:
        """Give up what is under way."""
        await self._flights.close()

    async def _submitted(self, body: Body, identifier: str | None = None) -> Job:
        answer = await self._answers.repeated(body)
        if answer is not None:
            # However often that is asked for, there is one job for all in ANSWERED_S.
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
        """Whether a job has failed by what may be otherwise the next time, or what it came to is there no more."""
        if not job.is_over:
            return False
        error = job.record.error
        if error is not None:
            return bool(error.get("retryable"))
        return await is_lost(job.record, self._blobs, self._records, self._notary)
