"""The log, as JSON lines on the standard error, each with its trace, tenant and job; and traces by OpenTelemetry.

The trace context is propagated, and spans are exported where the SDK of OpenTelemetry is installed.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Mapping, MutableMapping
from contextlib import contextmanager
from random import getrandbits
from typing import TYPE_CHECKING, Any, Final

import structlog
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


def configure_log(level: str) -> None:
    """Log everything from `level` on (debug, info, warning, error)."""
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_trace,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
    ]
    render = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*processors, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    # For uvicorn and asyncio.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(render, foreign_pre_chain=processors))
    logging.basicConfig(level=max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]), handlers=[handler])


def _add_trace(logger: Any, method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    found = trace_id()
    if found is not None:
        line["trace"] = found
    return line


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
    token = context.attach(_W3C.extract({_HEADER: header}) if header else context.get_current())
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
    with continuing(headers.get(_HEADER, "")):
        found = trace_id()
        if found is None:
            trace_bits, span_bits = _RANDOM_BITS
            fresh = SpanContext(getrandbits(trace_bits) or 1, getrandbits(span_bits) or 1, False, TraceFlags(0))
            # The end of the outer block detaches this one too.
            context.attach(trace.set_span_in_context(NonRecordingSpan(fresh)))
            found = trace.format_trace_id(fresh.trace_id)
        yield found


@contextmanager
def recorded(is_on: bool) -> Generator[None]:
    """Export the spans of this process during the block, if `is_on`, as `OTEL_*` configures; no fork survives that.

    UnavailableError when the exporter of traces is not installed or has no endpoint.
    """
    if not is_on:
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"KILN_TRACING needs {error.name}: run `pip install 'tensorkiln-server[tracing]'`."
        ) from None
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        raise UnavailableError("KILN_TRACING needs to know where traces go: set OTEL_EXPORTER_OTLP_ENDPOINT.")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
