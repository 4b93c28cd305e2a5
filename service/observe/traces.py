"""Traces by OpenTelemetry: propagation of the trace context, and the spans of tasks.

Only OpenTelemetry's API is needed, which FastAPI depends on. Until its SDK is installed and configured no span is
recorded, and only the id of the trace remains, for log lines.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from random import getrandbits
from typing import Final

from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from . import labels

_W3C: Final = TraceContextTextMapPropagator()
_HEADER: Final = "traceparent"
_SCOPE: Final = "tensorkiln.service"
_RANDOM_BITS: Final = (128, 64)


def trace_id() -> str | None:
    """The id of the trace that this context belongs to, 32 hexadecimal digits."""
    found = trace.get_current_span().get_span_context()
    return trace.format_trace_id(found.trace_id) if found.is_valid else None


def traceparent() -> str:
    """The current span as the header of W3C Trace Context, empty when there is none."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier.get(_HEADER, "")


@contextmanager
def continuing(header: str) -> Generator[None]:
    """Run the block in the trace of a `traceparent`; an empty or malformed one changes nothing."""
    token = context.attach(_W3C.extract({_HEADER: header}))
    try:
        yield
    finally:
        context.detach(token)


@contextmanager
def traced(headers: Mapping[str, str]) -> Generator[str]:
    """Run the block in a trace and yield its id: the current trace, that of the headers, or a new one."""
    found = trace_id()
    if found is not None:
        yield found
        return
    # Only this header: OpenTelemetry would log malformed parts of a `tracestate` verbatim.
    token = context.attach(_W3C.extract({_HEADER: headers.get(_HEADER, "")}))
    try:
        if trace_id() is None:
            trace_bits, span_bits = _RANDOM_BITS
            fresh = SpanContext(getrandbits(trace_bits) or 1, getrandbits(span_bits) or 1, False, TraceFlags(0))
            context.attach(trace.set_span_in_context(NonRecordingSpan(fresh)))
        yield trace_id() or ""
    finally:
        # Restores the context from before the first of the two attaches.
        context.detach(token)


class TaskTrace:
    """The span of a task, which begins now, with one for each of its stages. Times are those of `perf_counter`."""

    def __init__(self, kind: str, target: str) -> None:
        self._tracer = trace.get_tracer(_SCOPE)
        self._zero = time.time_ns() - round(time.perf_counter() * 1e9)
        attributes = {"kiln.job": kind, "kiln.target": target}
        self._span = self._tracer.start_span(f"sandbox {kind}", kind=SpanKind.INTERNAL, attributes=attributes)
        self._context = trace.set_span_in_context(self._span)

    def stage(self, name: str, begin: float, end: float, outcome: str) -> None:
        """Record a stage that is over."""
        if not self._span.is_recording():
            return
        span = self._tracer.start_span(f"stage {name}", self._context, start_time=self._at(begin))
        if outcome != labels.OK:
            span.set_attribute("error.type", outcome)
            span.set_status(StatusCode.ERROR)
        span.end(self._at(end))

    def end(self, end: float, outcome: str) -> None:
        """End the span of the task."""
        if outcome != labels.OK:
            self._span.set_attribute("error.type", outcome)
            self._span.set_status(StatusCode.ERROR)
        self._span.end(self._at(end))

    def _at(self, moment: float) -> int:
        return self._zero + round(moment * 1e9)
