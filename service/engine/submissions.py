"""Requests that are one job though they are sent again: by the key that they come with, or by what they came to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Final

from service import clock
from service.http.body import Body
from service.store.blobs import Blobs
from service.store.records import Records
from service.trust.notary import Notary

from .flights import Flights
from .idempotency import is_to_be_sent_again, job_id
from .job import Job
from .jobs import Jobs

ANSWERED_S: Final = 3600
"""For so long a request that was answered at once is one job. Far shorter than what has ended is kept."""


class Submissions:
    """The jobs that `jobs` has for requests which may be sent again."""

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
