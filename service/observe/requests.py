"""Every request, counted and logged as one line when its answer has ended: the outermost layer of the application."""

from __future__ import annotations

import time
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import labels
from .instruments import HTTP_IN_FLIGHT, HTTP_REQUESTS, HTTP_SECONDS
from .traces import traced

TRACE_HEADER: Final = "Kiln-Trace"
"""The id of the request's trace, by which its lines are found in the log."""
_DEFECT: Final = 500
_NO_ANSWER: Final = 0

_log = structlog.get_logger()


class Requests:
    """Gives every request a trace, and counts and logs how it ended: by its route, never its path or body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), _NO_ANSWER
        with traced(Headers(scope=scope)) as trace:

            async def sending(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                    MutableHeaders(scope=message)[TRACE_HEADER] = trace
                await send(message)

            HTTP_IN_FLIGHT.inc()
            try:
                await self._app(scope, receive, sending)
            except Exception:
                # Answered further out, by the handler of defects.
                status = status or _DEFECT
                raise
            finally:
                HTTP_IN_FLIGHT.dec()
                _tell(scope, status, time.perf_counter() - begin)


def _tell(scope: Scope, status: int, seconds: float) -> None:
    method = labels.method(scope["method"])
    # The template of the path; none for an unknown path or a refused request.
    route = str(getattr(scope.get("route"), "path", labels.NONE))
    HTTP_REQUESTS.labels(method, route, str(status)).inc()
    HTTP_SECONDS.labels(method, route).observe(seconds)
    _log.info("request", method=method, route=route, status=status, ms=round(seconds * 1e3, 2))
