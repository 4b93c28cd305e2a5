"""The time that a request or a job has waited for its turns while no part of it ran."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from service import clock
from tensorkiln.errors import DeadlineExceededError


class QueueTime:
    """Counts the seconds in which some part of the work waits and none runs. A deadline does not count them."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._waiting = self._running = 0
        self._since = clock.monotonic()
        self._followed: set[QueueTime] = {self}

    @property
    def seconds(self) -> float:
        """Seconds counted until now."""
        self._settle()
        return self._seconds

    @property
    def milliseconds(self) -> float:
        """Milliseconds counted until now, rounded for answers."""
        return round(self.seconds * 1e3, 3)

    def change(self, *, waiting: int = 0, running: int = 0) -> None:
        """Change the numbers of parts that wait and run from now on."""
        self._settle()
        self._waiting += waiting
        self._running += running

    def add(self, seconds: float) -> None:
        self._seconds += seconds

    @contextmanager
    def with_more(self, *, waiting: int = 0, running: int = 0) -> Generator[None]:
        """Count so many more waiting and running parts during the block."""
        self.change(waiting=waiting, running=running)
        try:
            yield
        finally:
            self.change(waiting=-waiting, running=-running)

    async def sleep(self, seconds: float) -> None:
        with self.with_more(waiting=1):
            await asyncio.sleep(seconds)

    @contextmanager
    def since(self, other: QueueTime) -> Generator[None]:
        """Add what `other` counts during the block, once: both are about the same work."""
        if other in self._followed:
            yield
            return
        self._followed.add(other)
        before = other.seconds
        try:
            yield
        finally:
            self._followed.discard(other)
            self.add(other.seconds - before)

    def _settle(self) -> None:
        now = clock.monotonic()
        if self._waiting and self._running <= 0:
            self._seconds += now - self._since
        self._since = now


_current: ContextVar[QueueTime] = ContextVar("queue_time")


def queue_time() -> QueueTime:
    """The queue time of the request or job of this context; a new unused one where there is none."""
    return _current.get(None) or QueueTime()


def begin_queue_time() -> QueueTime:
    """Set a new queue time for this context, and for the tasks created in it."""
    begun = QueueTime()
    _current.set(begun)
    return begun


@asynccontextmanager
async def telling_queue_time() -> AsyncGenerator[None]:
    """Add the queue time to a DeadlineExceededError, as the deadline does not count it."""
    try:
        yield
    except DeadlineExceededError as error:
        details = {**error.details, "queue_ms": queue_time().milliseconds}
        raise DeadlineExceededError(error.message, pointers=error.pointers, details=details) from None
