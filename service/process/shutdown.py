"""The end of a service, for those who wait for something else that may not come before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Shutdown(asyncio.Event):
    """Set when those who wait are let go."""

    def __init__(self) -> None:
        super().__init__()
        self._waits: set[asyncio.Timeout] = set()

    def set(self) -> None:
        super().set()
        for wait in self._waits:
            wait.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def before(self) -> AsyncGenerator[None]:
        """TimeoutError for what is not done in this block before the end. It costs no task."""
        async with asyncio.timeout(0 if self.is_set() else None) as wait:
            self._waits.add(wait)
            try:
                yield
            finally:
                self._waits.discard(wait)
