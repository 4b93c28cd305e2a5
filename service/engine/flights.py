"""Single-flight: identical work that is under way is joined, not repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from service.fairness.queue_time import queue_time

T = TypeVar("T")
P = TypeVar("P")


class _Progress(Generic[P]):
    """The progress of some work so far, and its listeners. It holds no reference to the work."""

    def __init__(self) -> None:
        self._past: list[P] = []
        self._listeners: list[Callable[[P], None]] = []

    def publish(self, progress: P) -> None:
        self._past.append(progress)
        for listener in self._listeners:
            listener(progress)

    def listen(self, listener: Callable[[P], None]) -> None:
        for progress in self._past:
            listener(progress)
        self._listeners.append(listener)

    def remove(self, listener: Callable[[P], None]) -> None:
        self._listeners.remove(listener)


class _Flight(Generic[T, P]):
    """Work under way: the keys it is joined by, its progress, and how many wait for it."""

    def __init__(self, key: Hashable, start: Callable[[Callable[[P], None]], Coroutine[Any, Any, T]]) -> None:
        self.keys = [key]
        self.progress: _Progress[P] = _Progress()
        self.waiting = 0
        self.queue_time = queue_time()
        self.task = asyncio.create_task(start(self.progress.publish))


class Flights(Generic[T, P]):
    """Work under way, by key. It is cancelled when the last task that waits for it is cancelled."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T, P]] = {}

    async def join(
        self,
        key: Hashable,
        start: Callable[[Callable[[P], None]], Coroutine[Any, Any, T]],
        on_progress: Callable[[P], None] = lambda _: None,
    ) -> T:
        """The result of the work under `key`, started unless under way; `on_progress` gets all of its progress."""
        if not self.has(key):
            self._begin(key, start)
        return await self.follow(key, on_progress)

    def has(self, key: Hashable) -> bool:
        return key in self._flights

    def share(self, key: Hashable, other: Hashable) -> None:
        """Let the work under `key` be joined under `other` too, a key without work."""
        flight = self._flights[key]
        flight.keys.append(other)
        self._flights[other] = flight

    async def follow(self, key: Hashable, on_progress: Callable[[P], None] = lambda _: None) -> T:
        """As `join`, for work that is under way. KeyError when there is none."""
        flight = self._flights[key]
        flight.progress.listen(on_progress)
        flight.waiting += 1
        try:
            with queue_time().since(flight.queue_time):
                return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            flight.progress.remove(on_progress)
            if flight.waiting == 0 and not flight.task.done():
                self._forget(flight)
                flight.task.cancel()
            # The error of the work refers to this frame by its traceback: the cycle would keep the work's data alive.
            del flight

    async def close(self) -> None:
        tasks = {flight.task for flight in self._flights.values()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: Hashable, start: Callable[[Callable[[P], None]], Coroutine[Any, Any, T]]) -> None:
        flight = self._flights[key] = _Flight(key, start)
        flight.task.add_done_callback(partial(self._land, flight))

    def _land(self, flight: _Flight[T, P], task: asyncio.Task[T]) -> None:
        self._forget(flight)
        if not task.cancelled():
            task.exception()  # when every caller has left, nobody else retrieves it

    def _forget(self, flight: _Flight[T, P]) -> None:
        for key in flight.keys:
            if self._flights.get(key) is flight:
                del self._flights[key]
