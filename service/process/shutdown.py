"""The shutdown of a service, which interrupts waiting blocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Shutdown(asyncio.Event):
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
        """Raise TimeoutError in the block if the shutdown comes before its end. It needs no task."""
        async with asyncio.timeout(0 if self.is_set() else None) as wait:
            self._waits.add(wait)
            try:
                yield
            finally:
                self._waits.discard(wait)
