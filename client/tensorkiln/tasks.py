"""Tasks of an event loop: several at once, and one that must not be left half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

A = TypeVar("A")
T = TypeVar("T")

SETTLE_S: Final = 5.0
"""How long a cancelled task waits for the end of work that has to be undone."""


async def together(work: Callable[[A], Coroutine[Any, Any, T]], items: Sequence[A], most: int) -> Sequence[T]:
    """The results of `work` for every item, in order; at most `most` are under way at once."""
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
    """The result of work that is not to be left half done: who is cancelled meanwhile gets it undone.

    A cancelled caller waits at most SETTLE_S for its end; a later result is undone.
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
"""A loop alone does not hold its tasks."""


async def _undone(task: asyncio.Task[T], undo: Callable[[T], Coroutine[Any, Any, None]]) -> None:
    await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        await undo(task.result())
