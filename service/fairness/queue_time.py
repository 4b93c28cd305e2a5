"""How long a request or a job has waited for its turns while nothing of it was done."""

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
        """Until now."""
        self._settle()
        return self._seconds

    @property
    def milliseconds(self) -> float:
        """Until now, as it is told."""
        return round(self.seconds * 1e3, 3)

    def change(self, *, waiting: int = 0, running: int = 0) -> None:
        """From now on so many parts more wait, and run."""
        self._settle()
        self._waiting += waiting
        self._running += running

    def add(self, seconds: float) -> None:
        """Count what was waited for elsewhere."""
        self._seconds += seconds

    @contextmanager
    def with_more(self, *, waiting: int = 0, running: int = 0) -> Generator[None]:
        """Have so many parts more wait, and run, for the block."""
        self.change(waiting=waiting, running=running)
        try:
            yield
        finally:
            self.change(waiting=-waiting, running=-running)

    async def sleep(self, seconds: float) -> None:
        """Wait, and count it."""
        with self.with_more(waiting=1):
            await asyncio.sleep(seconds)

    @contextmanager
    def since(self, other: QueueTime) -> Generator[None]:
        """Count what `other` counts meanwhile, once: the work of both is the same."""
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
    """That of the request or job that runs in this context; one that nobody asks for, where there is none."""
    return _current.get(None) or QueueTime()


def begin_queue_time() -> QueueTime:
    """A new one for this context, and for the tasks that are made in it."""
    begun = QueueTime()
    _current.set(begun)
    return begun


@asynccontextmanager
async def telling_queue_time() -> AsyncGenerator[None]:
    """Have the error of a compile that took too long say for how long it waited, which is not what took too long."""
    try:
        yield
    except DeadlineExceededError as error:
        details = {**error.details, "queue_ms": queue_time().milliseconds}
        raise DeadlineExceededError(error.message, pointers=error.pointers, details=details) from None
