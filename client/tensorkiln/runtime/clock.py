"""The times of steps on the host, and of the threads that share one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from .frame import run_shares
from .item_profile import Span


class Clock:
    """Counts from the begin of the first step; the threads that run something get numbers in order of appearance."""

    def __init__(self) -> None:
        self._zero = 0
        self._lanes: dict[int, int] = {threading.get_ident(): 0}
        self._lock: Final = threading.Lock()

    def timed(self, step: Callable[[], object]) -> tuple[int, int, tuple[Span, ...]]:
        """Run a step: when it began, what it took, and what each of its threads did."""
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
