"""Where the coroutines of a client run: in the event loop of their caller, or as far as they can without one."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeAlias, TypeVar

from .errors import RequestError
from .portal import is_in_portal, portal

T = TypeVar("T")
Undo: TypeAlias = "Callable[[T], Coroutine[Any, Any, None]]"


class LoopRunner:
    """Runs all of them in the loop of the caller; a thread does what takes a while."""

    async def offload(self, work: Callable[[], T], /) -> T:
        """The result of work that takes a while."""
        import asyncio

        return await asyncio.to_thread(work)

    async def in_loop(self, work: Coroutine[Any, Any, T], undo: Undo[T] | None = None) -> T:
        """The result of a coroutine that needs an event loop.

        With `undo` it is not left half done: a caller that is cancelled or interrupted meanwhile gets it undone.
        """
        return await (work if undo is None else _wholly(work, undo))

    async def iterate(self, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """The items of a generator that needs an event loop, which is closed with this one."""
        async with aclosing(items):
            async for item in items:
                yield item


class BlockingRunner(LoopRunner):
    """Has the portal run what needs a loop, and waits for it: no coroutine outside of the portal ever suspends."""

    async def offload(self, work: Callable[[], T], /) -> T:
        return await super().offload(work) if is_in_portal() else work()

    async def in_loop(self, work: Coroutine[Any, Any, T], undo: Undo[T] | None = None) -> T:
        own = super().in_loop(work, undo)
        return await own if is_in_portal() else portal().call(own, undo)

    def iterate(self, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
        return super().iterate(items) if is_in_portal() else _one_by_one(items)


async def _wholly(work: Coroutine[Any, Any, T], undo: Undo[T]) -> T:
    from .tasks import wholly

    return await wholly(work, undo)


async def _one_by_one(items: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """They belong to the process that began them: RequestError for the next one in a child that is forked meanwhile."""
    owner = os.getpid()
    try:
        while (item := portal().call(_next(items))) is not None:
            yield item[0]
            if os.getpid() != owner:
                raise RequestError(
                    "These results belong to the process that this one was forked from; start again here."
                )
    finally:
        if os.getpid() == owner:
            portal().close(items)


async def _next(items: AsyncGenerator[T]) -> tuple[T] | None:
    """The next item in a tuple, None at the end."""
    async for item in items:
        return (item,)
    return None
