"""An event loop with simulated time: if no task is ready, the time jumps to the next timer."""

from __future__ import annotations

import asyncio
from collections import deque
from heapq import heappop
from typing import Any

from .process import current


class NothingHappens(Exception):
    """Deadlock: all tasks wait, and there is no timer."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs tasks in the order in which they become ready, without files, sockets or threads."""

    _ready: deque[Any]
    _scheduled: list[Any]
    _timer_cancelled_count: int

    def __init__(self) -> None:
        super().__init__()
        self._time = 0.0

    def time(self) -> float:
        """Simulated seconds since the loop was made."""
        return self._time

    def create_task(self, coro: Any, **how: Any) -> asyncio.Task[Any]:
        """Create a task that belongs to the process of its context."""
        task = super().create_task(coro, **how)
        context = how.get("context")
        process = current.get() if context is None else context.get(current)
        if process is not None:
            process.has(task)
        return task

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """Not supported: threads run in real time."""
        raise AssertionError(f"{func} needs a thread, which no simulation has")

    def _run_once(self) -> None:
        """`BaseEventLoop._run_once` of CPython 3.11 to 3.14 without the selector, which would take half of the time."""
        scheduled, ready = self._scheduled, self._ready
        while scheduled and scheduled[0]._cancelled:
            self._timer_cancelled_count -= 1
            heappop(scheduled)._scheduled = False
        if not ready:
            if not scheduled:
                raise NothingHappens
            self._time = max(self._time, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self._time:
            handle = heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _write_to_self(self) -> None:
        """No selector to wake up."""
