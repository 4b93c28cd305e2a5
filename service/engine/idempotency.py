"""A request that is sent again because nobody knows what became of it, and is the same job."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Final

from service import clock
from service.identity.caller import caller
from service.store.blobs import Blobs
from service.store.records import Records
from service.trust.notary import Notary
from service.wire.body import Body

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


async def is_to_be_sent_again(job: Job, blobs: Blobs, records: Records, notary: Notary) -> bool:
    """Whether a job has failed by what may be otherwise the next time, or what it came to is there no more."""
    if not job.is_over:
        return False
    error = job.record.error
    return bool(error.get("retryable")) if error is not None else await is_lost(job.record, blobs, records, notary)


class Resubmissions:
    """The jobs that `jobs` has for requests which may be sent again: by a key, or by what they came to."""

    def __init__(self, jobs: Jobs, blobs: Blobs, records: Records, notary: Notary) -> None:
        self._jobs = jobs
        self._blobs = blobs
        self._records = records
        self._notary = notary
        self._flights: Flights[Job, None] = Flights()

    async def close(self) -> None:
        """Give up what is under way."""
        await self._flights.close()

    async def by_key(self, body: Body, key: str, begin: Callable[[str], Awaitable[Job]]) -> Job:
        """The job that the caller has for this body and `key`. `begin` makes one with an id, where there is none."""
        return await self._flights.join(job_id(body, key), lambda _: self._once(body, key, begin))

    async def answered(self, body: Body, answer: bytes) -> Job:
        """A job that has come to `answer`: however often that is asked for, there is one for all in ANSWERED_S."""
        key = f"{sha256(answer).hexdigest()}.{clock.time() // ANSWERED_S:.0f}"
        return await self.by_key(body, key, partial(self._jobs.accept, body, answer))

    async def _once(self, body: Body, key: str, begin: Callable[[str], Awaitable[Job]]) -> Job:
        for again in count():
            identifier = job_id(body, key, again)
            job = await self._jobs.known(identifier)
            if job is None:
                return await begin(identifier)
            if not await is_to_be_sent_again(job, self._blobs, self._records, self._notary):
                return job
        raise AssertionError("count() has no end")
