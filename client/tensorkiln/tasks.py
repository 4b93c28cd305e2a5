"""Helpers for asyncio tasks: bounded concurrency, and work that is undone on cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

A = TypeVar("A")
T = TypeVar("T")

SETTLE_S: Final = 5.0
"""Seconds that a cancelled caller waits for the end of work that has to be undone."""


async def together(work: Callable[[A], Coroutine[Any, Any, T]], items: Sequence[A], most: int) -> Sequence[T]:
    """The results of `work` for every item, in order; at most `most` run at once."""
    free = asyncio.Semaphore(most)

    async def one(item: A) -> T:
        async with free:
            return await work(item)

    tasks = [asyncio.create_task(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def wholly(work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, None]]) -> T:
    """The result of work that runs to its end even if the caller is cancelled; its result is then undone.

    A cancelled caller waits at most `SETTLE_S`; the undoing of a later result goes on without it.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        undoing = asyncio.create_task(_undone(task, undo))
        _late.add(undoing)
        undoing.add_done_callback(_late.discard)
        await asyncio.wait({task}, timeout=SETTLE_S)
        if task.done():
            await undoing
        raise


_late: Final[set[asyncio.Task[None]]] = set()
"""Keeps tasks alive, because an event loop holds only weak references to them."""


async def _undone(task: asyncio.Task[T], undo: Callable[[T], Coroutine[Any, Any, None]]) -> None:
    await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        await undo(task.result())
