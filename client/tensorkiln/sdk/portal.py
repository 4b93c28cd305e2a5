"""What needs an event loop, for those who have none: one in a thread, for as long as it is iterated over."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from threading import Thread
from typing import Any, TypeVar

from ..errors import RequestError

T = TypeVar("T")


def iterate_in_thread(items: AsyncGenerator[T], close: Callable[[], Awaitable[None]]) -> Generator[T]:
    """The items of an asynchronous generator.

    When this generator is closed, or interrupted while it waits, so is the asynchronous one; then `close` is awaited.
    It belongs to the process that began it: a child forked meanwhile can leave it, and gets a RequestError for the next
    item.
    """
    owner = os.getpid()
    loop = asyncio.new_event_loop()
    steps: set[asyncio.Task[Any]] = set()
    thread = Thread(target=loop.run_forever, name="kiln-loop", daemon=True)
    thread.start()
    try:
        try:
            while (item := _call(loop, _next(items, steps))) is not None:
                yield item[0]
                if os.getpid() != owner:
                    raise RequestError("These results are of the process that this one was forked from; ask anew here.")
        finally:
            if os.getpid() == owner:
                _call(loop, _finish(items, steps, close))
    finally:
        # A child has no such thread, and to close its copy of the loop would unsettle that of its parent.
        if os.getpid() == owner:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _next(items: AsyncGenerator[T], steps: set[asyncio.Task[Any]]) -> tuple[T] | None:
    """The next item in a tuple, None at the end. While this runs, its task is in `steps`."""
    step = asyncio.current_task()
    assert step is not None
    steps.add(step)
    try:
        async for item in items:
            return (item,)
        return None
    finally:
        steps.remove(step)


async def _finish(
    items: AsyncGenerator[Any], steps: set[asyncio.Task[Any]], close: Callable[[], Awaitable[None]]
) -> None:
    # A step that was interrupted is being cancelled: the generator cannot be closed before it has ended.
    await asyncio.gather(*steps, return_exceptions=True)
    await items.aclose()
    await close()
    await asyncio.get_running_loop().shutdown_default_executor()


def _call(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
