"""A bounded number of jobs at a time, and a bounded number of those that wait."""

from __future__ import annotations

import asyncio
from types import TracebackType

from tensorkiln.errors import UnavailableError


class Lane:
    """`async with lane:` runs at most `width` blocks at a time, in the order in which they came.

    UnavailableError for one that would be the `queue + 1`st to wait.
    """

    def __init__(self, width: int, queue: int) -> None:
        self._free = asyncio.Semaphore(width)
        self._queue = queue
        self._waiting = 0

    async def __aenter__(self) -> None:
        if self._free.locked() and self._waiting >= self._queue:
            raise UnavailableError(
                f"{self._waiting} compiles wait already, which is the limit; send the request again in a moment.",
                details={"waiting": self._waiting, "queue": self._queue},
            )
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._free.release()
