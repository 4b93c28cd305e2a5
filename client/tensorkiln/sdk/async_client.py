"""The client in an event loop."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from .batch import BatchCalls


class AsyncClient(BatchCalls):
    """`Client` in an asyncio event loop: the same arguments, methods and errors; its methods are coroutines.

    Longer computations and an `api_key` function run in threads. Several calls may run at once, and each is cancelled
    with its task. Use it in an `async with` block, or await `close`.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
