"""Runners of a client's coroutines: in the caller's event loop, or blocking, without one."""

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
    """Runs coroutines in the caller's event loop, and slow work in threads."""

    async def offload(self, work: Callable[[], T], /) -> T:
        """Run slow work in a thread and return its result."""
        import asyncio

        return await asyncio.to_thread(work)

    async def in_loop(self, work: Coroutine[Any, Any, T], undo: Undo[T] | None = None) -> T:
        """Run a coroutine that needs an event loop; with `undo`, to its end, which is undone if the caller has left."""
        return await (work if undo is None else _wholly(work, undo))

    async def iterate(self, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """The items of a generator that needs an event loop. Closing this generator closes `items`."""
        async with aclosing(items):
            async for item in items:
                yield item


class BlockingRunner(LoopRunner):
    """Runs coroutines that need a loop in the portal, and blocks; coroutines outside the portal never suspend."""

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
    """The items, each fetched by the portal. RequestError in a forked child: they belong to the parent process."""
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
