"""A compile request becomes a job."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from structlog.contextvars import bind_contextvars

from service.fairness.turns import Fairness
from service.identity.tenancy import Tenancy
from service.wire.body import Body

from .answers import Answers
from .idempotency import Resubmissions
from .job import Job
from .jobs import Jobs


class Submissions:
    """Has `jobs` accept what `answers` has no answer to yet; a request that is sent again is one of `resubmissions`."""

    def __init__(
        self, jobs: Jobs, resubmissions: Resubmissions, answers: Answers, fairness: Fairness, tenancy: Tenancy
    ) -> None:
        self._jobs = jobs
        self._resubmissions = resubmissions
        self._answers = answers
        self._fairness = fairness
        self._tenancy = tenancy

    async def submit(self, body: Body, key: str | None = None) -> Job:
        """A job that comes to the answer of a compile request; over already when the request is a repeated one.

        What the caller has sent with this `key` before is the same job. ForbiddenError for a caller who may have
        nothing stored.
        """
        self._tenancy.require_compile()
        begin = partial(self._submitted, body)
        job = await (begin() if key is None else self._resubmissions.by_key(body, key, begin))
        bind_contextvars(job=job.record.id)
        return job

    async def close(self) -> None:
        """Give up what is under way."""
        await self._resubmissions.close()

    async def _submitted(self, body: Body, identifier: str | None = None) -> Job:
        answer = await self._answers.repeated(body)
        if answer is not None:
            return await self._resubmissions.answered(body, answer)
        with ExitStack() as counted:
            counted.enter_context(self._fairness.request())
            job = await self._jobs.accept(body, identifier=identifier)
            if job.task is not None:
                until_its_end = counted.pop_all()
                job.task.add_done_callback(lambda _: until_its_end.close())
        return job
