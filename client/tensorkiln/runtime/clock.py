"""Timing of steps on the host, and of the threads that share a step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from .frame import run_shares
from .item_profile import Span


class Clock:
    """Measures from the start of the first step; threads are numbered in order of their first share."""

    def __init__(self) -> None:
        self._zero = 0
        self._lanes: dict[int, int] = {threading.get_ident(): 0}
        self._lock: Final = threading.Lock()

    def timed(self, step: Callable[[], object]) -> tuple[int, int, tuple[Span, ...]]:
        """Run a step; return its start and duration in nanoseconds, and the spans of its threads."""
        spans: list[Span] = []
        if isinstance(step, partial) and step.func is run_shares:
            function, shares = step.args
            step = partial(run_shares, partial(self._share, spans, function), shares)
        start = time.perf_counter_ns()
        self._zero = self._zero or start
        step()
        taken = time.perf_counter_ns() - start
        begun = start - self._zero
        return begun, taken, tuple(sorted(spans, key=lambda span: span.lane)) or (Span(0, begun, taken),)

    def _share(self, spans: list[Span], function: Callable[..., None], *share: int) -> None:
        start = time.perf_counter_ns()
        function(*share)
        taken = time.perf_counter_ns() - start
        with self._lock:
            lane = self._lanes.setdefault(threading.get_ident(), len(self._lanes))
            spans.append(Span(lane, start - self._zero, taken))
