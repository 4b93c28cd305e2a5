"""Metrics and traces of one task of the sandbox: how long its stages took, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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
        self._tracer = trace.get_tracer(_SCOPE)

    def begins(self, stage: str) -> None:
        """Record that the task begins a stage."""
        self._end_stage(labels.OK)
        self._begin_stage(labels.stage(stage))
        self._on_stage(stage)

    def __enter__(self) -> Self:
        self._begun = time.perf_counter()
        attributes = {"kiln.job": self._kind, "kiln.target": self._target}
        self._span = self._tracer.start_span(f"sandbox {self._kind}", kind=SpanKind.INTERNAL, attributes=attributes)
        self._begin_stage(_FIRST)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        outcome = labels.outcome(error)
        JOB_SECONDS.labels(self._kind, outcome).observe(time.perf_counter() - self._begun)
        self._end_stage(outcome)
        _end(self._span, outcome)
        if isinstance(error, CrashedError):
            CRASHES.labels(labels.signal_of(error), self._stage).inc()
        elif isinstance(error, DeadlineExceededError | ResourceExhaustedError):
            SANDBOX_KILLS.labels(labels.cause(error)).inc()

    def _begin_stage(self, stage: str) -> None:
        self._stage, self._stage_begun = stage, time.perf_counter()
        self._stage_span = self._tracer.start_span(f"stage {stage}", trace.set_span_in_context(self._span))

    def _end_stage(self, outcome: str) -> None:
        if self._kind == _COMPILE:
            seconds = time.perf_counter() - self._stage_begun
            COMPILE_SECONDS.labels(self._stage, self._target, outcome).observe(seconds)
        _end(self._stage_span, outcome)


def _end(span: Span, outcome: str) -> None:
    if outcome != labels.OK:
        span.set_attribute("error.type", outcome)
        span.set_status(StatusCode.ERROR)
    span.end()
