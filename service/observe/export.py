"""Where traces go."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from opentelemetry import trace

from tensorkiln.errors import UnavailableError

if TYPE_CHECKING:
    # Workers send spans, too, and answer no HTTP.
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
"""What FastAPI is to do: spans of requests where there is a tracer.

Figures are at /metrics and lines in the log, which know no paths and no texts of exceptions.
"""


def record_spans() -> Callable[[], None]:
    """Send the spans of this process by `OTEL_*`; the function that ends it.

    After `require_exporter`, and in the process that makes the spans: what sends them does not survive a fork.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def require_exporter() -> None:
    """UnavailableError when traces are to be sent and cannot be: nothing to send them with, or nowhere to send them."""
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
