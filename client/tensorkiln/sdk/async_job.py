"""A compile job in an event loop."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Final

from ..errors import JobCancelledError, TensorkilnError, UnavailableError, error_from_problem
from ..retries import Deadline
from ..spec import CompiledProgram
from ..transport import Transport
from .answers import read
from .job_records import JobEvent, JobStatus, Progress

CANCEL_S: Final = 5.0
"""Seconds that a leaving caller waits for the service to acknowledge the cancellation of its job."""

Finish = Callable[[bytes], Awaitable[tuple[CompiledProgram, ...]]]


class AsyncJob:
    """A compile that a service has accepted: `Job` in an event loop. `latest` is the last status that was returned.

    `finish` reads the programs from the answer, `programs` in number.
    """

    def __init__(self, accepted: JobStatus, transport: Transport, finish: Finish, programs: int) -> None:
        self._transport = transport
        self._finish = finish
        self._programs = programs
        self._path = f"/jobs/{accepted.id}"
        self._done = ""
        self.latest = accepted

    @property
    def id(self) -> str:
        """The id of the job at its service."""
        return self.latest.id

    async def status(self) -> JobStatus:
        """Ask the service for the current status."""
        return self._stands(await self._content())

    async def cancel(self) -> JobStatus:
        """Cancel the job unless it is over, and return its status."""
        return self._stands(await self._transport.delete(self._path, programs=self._programs))

    async def events(self, after: str = "", timeout_s: float | None = None) -> AsyncGenerator[JobEvent]:
        """Yield the job's events after the event with the id `after`, to the end of the job.

        A lost connection is re-established, and the events resume where they stopped. UnavailableError after
        `timeout_s` seconds, or when the service stays unreachable.
        """
        # No event follows `done`. Not every service answers 204 for that, so do not send the request.
        if after and after == self._done:
            return
        async with aclosing(self._followed(after, _deadline(timeout_s))) as events:
            async for event in events:
                yield event

    async def wait(
        self, timeout_s: float | None = None, on_progress: Progress | None = None
    ) -> tuple[CompiledProgram, ...]:
        """Wait for the job and return the program for each target, in order.

        Raises the compile's error when it failed; JobCancelledError when the job was cancelled; UnavailableError after
        `timeout_s` seconds, in which case the job goes on.
        """
        return await self.wait_until(_deadline(timeout_s), on_progress)

    async def wait_until(
        self, deadline: Deadline | None, on_progress: Progress | None = None
    ) -> tuple[CompiledProgram, ...]:
        """Like `wait`, for a caller with a deadline of its own."""
        if not self.latest.is_over:
            async with aclosing(self._followed("", deadline)) as events:
                async for event in events:
                    if on_progress is not None:
                        on_progress(event)
        content = await self._content(deadline)
        status = self._stands(content)
        if status.error is not None:
            raise error_from_problem(status.error)
        if status.state == "cancelled":
            raise JobCancelledError(f"The job {self.id} was cancelled.", details={"job": self.id})
        if status.state != "done":
            raise UnavailableError(f"The job {self.id} is {status.state}, although its service reported its end.")
        return await self._finish(content)

    async def give_up(self) -> None:
        """Cancel the job for a leaving caller: wait at most `CANCEL_S` seconds and ignore errors."""
        with suppress(TensorkilnError):
            await self._transport.delete(self._path, programs=self._programs, deadline=Deadline.after(CANCEL_S))

    async def _content(self, deadline: Deadline | None = None) -> bytes:
        return await self._transport.get(self._path, programs=self._programs, deadline=deadline)

    def _stands(self, content: bytes) -> JobStatus:
        self.latest = read(JobStatus, content)
        return self.latest

    async def _followed(self, after: str, deadline: Deadline | None) -> AsyncGenerator[JobEvent]:
        async with aclosing(self._transport.events(f"{self._path}/events", after, deadline)) as events:
            async for event in events:
                if event.event == "done":
                    self._done = event.id
                yield _event(event.id, event.event, event.data)


def _deadline(timeout_s: float | None) -> Deadline | None:
    return None if timeout_s is None else Deadline.after(timeout_s)


def _event(identifier: str, kind: str, data: str) -> JobEvent:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise UnavailableError(f"The service's event {identifier!r} is not one that this SDK understands: {data[:200]}")
    return JobEvent(identifier, kind, fields)
