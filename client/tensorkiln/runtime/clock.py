"""Timing of steps on the host, and of the threads that share a step."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from .crew import Crew, Task
from .item_profile import Span


class Clock:
    """Measures from the start of the first step. The lane of a span is the number of the worker."""

    def __init__(self) -> None:
        self._zero = 0

    def timed(self, step: Callable[[], object]) -> tuple[int, int, tuple[Span, ...]]:
        """Run a step; return its start and duration in nanoseconds, and the spans of its threads."""
        task = _task(step)
        times = (ctypes.c_int64 * (2 * task.workers if task else 0))()
        if task:
            task.times = ctypes.addressof(times)
        start = time.perf_counter_ns()
        self._zero = self._zero or start
        step()
        taken = time.perf_counter_ns() - start
        if task:
            task.times = None
        begun = start - self._zero
        shares = zip(times[::2], times[1::2], strict=True)
        spans = tuple(
            Span(worker, first - self._zero, last - first) for worker, (first, last) in enumerate(shares) if first
        )
        return begun, taken, spans or (Span(0, begun, taken),)


def _task(step: Callable[[], object]) -> Any:
    """The task that a step runs on several threads; None for any other step."""
    if not (isinstance(step, partial) and getattr(step.func, "__func__", None) is Crew.run):
        return None
    task = Task.from_address(step.args[0])
    return task if task.workers > 1 else None
