"""A compile job with blocking methods."""

from __future__ import annotations

from .async_job import AsyncJob
from .blocking import Blocking, blocking, iterating


class Job(Blocking[AsyncJob]):
    """A compile that a service has accepted; it runs whether or not a caller waits for it.

    Its methods need the client to be open. Any thread may call them.
    """

    @property
    def id(self) -> str:
        """The id of the job at its service."""
        return self._inner.id

    status = blocking(AsyncJob.status)
    cancel = blocking(AsyncJob.cancel)
    events = iterating(AsyncJob.events)
    wait = blocking(AsyncJob.wait)
