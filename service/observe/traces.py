"""Traces by OpenTelemetry: propagation of the trace context, and the export of spans where its SDK is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from random import getrandbits
from typing import TYPE_CHECKING, Final

from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tensorkiln.errors import UnavailableError

if TYPE_CHECKING:
    # Not at run time: workers send spans too, and do not need FastAPI.
    from fastapi.telemetry import TelemetryConfig

_W3C: Final = TraceContextTextMapPropagator()
_HEADER: Final = "traceparent"
_RANDOM_BITS: Final = (128, 64)
_NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_PROBES: Final = ("/healthz", "/readyz", "/metrics")
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
TELEMETRY: Final[TelemetryConfig] = {
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
    "exclude": lambda scope: scope.get("path") in _PROBES,
}
"""The telemetry of FastAPI: only spans of requests, where there is a tracer."""


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


def record_spans() -> Callable[[], None]:
    """Export the spans of this process as `OTEL_*` configures, which no fork survives; the function that stops it."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def require_exporter() -> None:
    """Raise UnavailableError when the exporter of traces is not installed or has no endpoint."""
    missing = [name for name in _NEEDED if not _is_installed(name)]
    if missing:
        raise UnavailableError(
            f"KILN_TRACING needs {' and '.join(missing)}: run `pip install 'tensorkiln-server[tracing]'`."
        )
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        raise UnavailableError("KILN_TRACING needs to know where traces go: set OTEL_EXPORTER_OTLP_ENDPOINT.")


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
