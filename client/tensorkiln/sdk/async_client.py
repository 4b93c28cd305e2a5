"""The client in an event loop."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from .batch import BatchCalls


class AsyncClient(BatchCalls):
    """`Client` in an asyncio event loop: the same arguments, methods and errors, to be awaited.

    What takes a while, such as reading a graph or verifying a program, is done by threads; so is a function that
    gives tokens called. Calls may be under way at once, and each is given up when its task is cancelled. The programs
    that come back are those of a `Client`, and run where they are called.

    Use it in an `async with` block, or await `close`.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
