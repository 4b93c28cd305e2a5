"""The export of traces."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from opentelemetry import trace

from tensorkiln.errors import UnavailableError

if TYPE_CHECKING:
    # Not at run time: workers send spans too, and do not need FastAPI.
    from fastapi.telemetry import TelemetryConfig

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
"""The telemetry of FastAPI: only spans of requests, where there is a tracer.

The service makes its own metrics and log lines, without paths and texts of exceptions.
"""


def record_spans() -> Callable[[], None]:
    """Export the spans of this process as `OTEL_*` configures; return the function that stops it.

    Call it after `require_exporter`, in the process that makes the spans: the exporter does not survive a fork.
    """
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
