"""OpenTelemetry spans of the SDK's requests.

Without tracing in the program, nothing is imported, and a request costs one dictionary look-up.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

_API: Final = "opentelemetry.trace"
_SCOPE: Final = "tensorkiln"
_NOTHING: Final[Mapping[str, str]] = {}


@contextmanager
def request_span(method: str, path: str) -> Generator[Mapping[str, str]]:
    """A span for a request; yields the headers by which the service continues the trace, empty without tracing.

    Only W3C Trace Context is sent; other propagated data of the program is not for the service.
    """
    if _API not in sys.modules:
        yield _NOTHING
        return
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    # The first step of a path is its route; the rest are digests.
    route = f"/{path.split('/')[1]}" if "/" in path else path
    attributes = {"http.request.method": method, "url.template": route}
    with trace.get_tracer(_SCOPE).start_as_current_span(
        f"{method} {route}", kind=trace.SpanKind.CLIENT, attributes=attributes, record_exception=False
    ):
        headers: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(headers)
        yield headers
