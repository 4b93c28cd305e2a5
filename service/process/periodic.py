"""Periodic tasks, tasks in the background, and blocks that an event interrupts, such as the end of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from tensorkiln.errors import TensorkilnError

_PAUSE_S: Final = 1.0
"""Least seconds between a failed round and the next."""

_log = structlog.get_logger()


async def periodically(
    what: str, every_s: float, once: Callable[[], Awaitable[None]], *, at_once: bool = False
) -> None:
    """Run `once` every `every_s` seconds, from now on if `at_once`. A failed round is logged, and the next follows."""
    await asyncio.sleep(0 if at_once else every_s)
    while True:
        (error,) = await asyncio.gather(once(), return_exceptions=True)
        if isinstance(error, TensorkilnError):
            _log.error("a periodic task of the service failed", what=what, reason=error.message)
        elif error is not None:
            _log.error("a periodic task of the service failed", what=what, exc_info=error)
        await asyncio.sleep(every_s if error is None else max(every_s, _PAUSE_S))


class Background:
    """Tasks that go on when those who began them are cancelled."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def see_to(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` in a task of its own."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settle(self) -> None:
        """Wait until all of them are done."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def end(self) -> None:
        """Cancel all of them, and wait until they are done."""
        for task in self._tasks:
            task.cancel()
        await self.settle()


class Interruption(asyncio.Event):
    """An event that interrupts the running `before` blocks when it is set."""

    def __init__(self) -> None:
        super().__init__()
        self._waits: set[asyncio.Timeout] = set()

    def set(self) -> None:
        super().set()
        for wait in self._waits:
            wait.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def before(self) -> AsyncGenerator[None]:
        """Raise TimeoutError in the block if the event is set before its end. It needs no task."""
        async with asyncio.timeout(0 if self.is_set() else None) as wait:
            self._waits.add(wait)
            try:
                yield
            finally:
                self._waits.discard(wait)
