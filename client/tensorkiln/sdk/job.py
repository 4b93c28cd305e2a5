"""A compile that is not waited for."""

from __future__ import annotations

from collections.abc import Generator

from ..immediate import iterate, run
from ..spec import CompiledProgram
from .async_job import AsyncJob
from .job_records import JobEvent, JobStatus


class Job:
    """A compile that a service has accepted, and sees through whoever waits for it.

    It needs its client to be open. Any thread may call it.
    """

    def __init__(self, job: AsyncJob) -> None:
        self._job = job

    @property
    def id(self) -> str:
        """The id of the job at its service."""
        return self._job.id

    def status(self) -> JobStatus:
        """How it stands now."""
        return run(self._job.status())

    def cancel(self) -> JobStatus:
        """Cancel it unless it is over; how it stands then."""
        return run(self._job.cancel())

    def events(self, after: str = "", timeout_s: float | None = None) -> Generator[JobEvent]:
        """What happens to it, from the event after the one with the id `after` to its end.

        A connection that is lost is made again, and the events go on where they were. UnavailableError after
        `timeout_s` seconds, or when the service stays away.
        """
        return iterate(self._job.events(after, timeout_s))

    def wait(self, timeout_s: float | None = None) -> tuple[CompiledProgram, ...]:
        """The program for each target, in order, once they are there.

        The error of a compile that failed; JobCancelledError for a job that was cancelled; UnavailableError after
        `timeout_s` seconds, when the job goes on.
        """
        return run(self._job.wait(timeout_s))
