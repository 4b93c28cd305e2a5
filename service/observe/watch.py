"""Metrics and traces of one task of the sandbox: how long its stages took, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode

from tensorkiln.errors import CrashedError, DeadlineExceededError, ResourceExhaustedError

from . import labels
from .instruments import COMPILE_SECONDS, CRASHES, JOB_SECONDS, SANDBOX_KILLS

_FIRST: Final = "start"
_COMPILE: Final = "compile"
_SCOPE: Final = "tensorkiln.service"


class TaskFigures:
    """Counts and traces a task while the block runs; `begins` ends a stage, and passes the next to `on_stage`."""

    def __init__(self, kind: str, header: Mapping[str, Any], on_stage: Callable[[str], None]) -> None:
        self._kind = kind
        self._target = labels.target(header.get("target"))
        self._on_stage = on_stage
        self._stages: list[tuple[str, float]] = []

    def begins(self, stage: str) -> None:
        """Record that the task begins a stage."""
        self._stages.append((labels.stage(stage), time.perf_counter()))
        self._on_stage(stage)

    def __enter__(self) -> Self:
        self._stages.append((_FIRST, time.perf_counter()))
        self._zero = time.time_ns() - round(time.perf_counter() * 1e9)
        self._tracer = trace.get_tracer(_SCOPE)
        attributes = {"kiln.job": self._kind, "kiln.target": self._target}
        self._span = self._tracer.start_span(f"sandbox {self._kind}", kind=SpanKind.INTERNAL, attributes=attributes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        end, outcome = time.perf_counter(), labels.outcome(error)
        begins = [begin for _, begin in self._stages]
        JOB_SECONDS.labels(self._kind, outcome).observe(end - begins[0])
        outcomes = [labels.OK] * (len(begins) - 1) + [outcome]
        for (stage, begin), stop, how in zip(self._stages, [*begins[1:], end], outcomes, strict=True):
            if self._span.is_recording():
                inside, since = trace.set_span_in_context(self._span), self._at(begin)
                _end(self._tracer.start_span(f"stage {stage}", inside, start_time=since), self._at(stop), how)
            if self._kind == _COMPILE:
                COMPILE_SECONDS.labels(stage, self._target, how).observe(stop - begin)
        _end(self._span, self._at(end), outcome)
        last = self._stages[-1][0]
        if isinstance(error, CrashedError):
            CRASHES.labels(labels.signal_of(error), last).inc()
        elif isinstance(error, DeadlineExceededError | ResourceExhaustedError):
            SANDBOX_KILLS.labels(labels.cause(error)).inc()

    def _at(self, moment: float) -> int:
        """A time of `perf_counter` in nanoseconds since the epoch."""
        return self._zero + round(moment * 1e9)


def _end(span: Span, at: int, outcome: str) -> None:
    if outcome != labels.OK:
        span.set_attribute("error.type", outcome)
        span.set_status(StatusCode.ERROR)
    span.end(at)
