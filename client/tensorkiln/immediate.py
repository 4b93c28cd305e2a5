"""Run coroutines that use only blocking calls: they never suspend and need no event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Offload(Protocol):
    """Runs slow work where it does not block other tasks."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


async def inline(work: Callable[[], T], /) -> T:
    """An `Offload` that runs the work at once, for blocking clients."""
    return work()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends; RuntimeError when it does."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("A blocking client waits for something that needs an event loop.")


def iterate(items: AsyncGenerator[T]) -> Generator[T]:
    """The items of an asynchronous generator that never suspends."""
    try:
        while True:
            try:
                item = run(_next(items))
            except StopAsyncIteration:
                return
            yield item
    finally:
        run(items.aclose())


async def _next(items: AsyncGenerator[T]) -> T:
    return await anext(items)
