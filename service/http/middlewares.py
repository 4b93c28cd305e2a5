"""The middlewares: every request is traced and counted, authenticated, started in its turn, and bounded in memory.

Bodies count as memory until they are answered, large answers until they are sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from service.fairness.lane import Bounds, FairLane
from service.fairness.shares import Held, Shares
from service.fairness.turns import Turns
from service.identity.authenticator import PUBLIC, Authenticator, check
from service.identity.caller import LOCAL, Caller, acting_as
from service.identity.register import TenantRecord
from service.observe import labels
from service.observe.instruments import HTTP_IN_FLIGHT, HTTP_REQUESTS, HTTP_SECONDS
from service.observe.telemetry import traced
from tensorkiln.errors import RateLimitedError, TensorkilnError, UnavailableError
from tensorkiln.ignored_key import IGNORED, IGNORED_HEADER

from .connections import MOST
from .problems import respond

TRACE_HEADER: Final = "Kiln-Trace"
"""The id of the request's trace, by which its lines are found in the log."""
PER_PASS: Final = 2
"""Requests that may start in one pass of the event loop; a stored program is answered within one, a compile in 40."""
PIECE: Final = 256 << 10
"""Bytes of an answer sent at a time; a longer answer counts as large."""
_HELD: Final = "kiln.held"
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


class Guard:
    """Authenticates each request and runs it on behalf of its caller, except for `public` paths."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator, public: Collection[str] = PUBLIC) -> None:
        self._app = app
        self._public = public
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        try:
            caller = LOCAL if path in self._public else await self._caller(scope)
            if not caller.is_local:
                check(caller, scope["method"], path)
        except TensorkilnError as error:
            _log.info("a request was refused", code=error.code, peer=(scope.get("client") or [None])[0])
            await respond(error)(scope, receive, send)
            return
        bind_contextvars(tenant=caller.tenant)
        with acting_as(caller):
            await self._app(scope, receive, self._telling(scope, send))

    def _telling(self, scope: Scope, send: Send) -> Send:
        """`send`, whose answer says whether a credential was sent that nobody looked at."""
        if "authorization" not in Headers(scope=scope) or not self._authenticator.has_no_keys:
            return send

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[IGNORED_HEADER] = IGNORED
            await send(message)

        return told

    async def _caller(self, scope: Scope) -> Caller:
        client = scope.get("client")
        headers = Headers(scope=scope)
        peer = client[0] if client else None
        if headers.get("x-forwarded-for") or headers.get("forwarded"):
            peer = ""  # behind a proxy every peer may be the loopback
        return await self._authenticator.caller(headers.get("authorization"), peer, headers.get("host"))


class Admission:
    """Starts PER_PASS requests per pass of the event loop, tenants in turn, except for `public` paths."""

    def __init__(self, app: ASGIApp, tenant: Callable[[str], TenantRecord], public: Collection[str]) -> None:
        self._app = app
        self._public = public
        self._turns = Turns(FairLane(Bounds(PER_PASS, MOST)), tenant, work=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._public:
            async with self._turns.turn(0):
                await asyncio.sleep(0)
        await self._app(scope, receive, send)


class RequestMemory:
    """Limits all bodies to `most` bytes together, and large answers, of which a tenant always gets one, to as many."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._bodies = Shares(most, "held_bytes", "bytes of requests under way")
        self._answers = Shares(most, "fetched_bytes", "bytes of large answers that are to be fetched")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with Held(self._bodies) as body, Held(self._answers) as answer:
            scope[_HELD] = body
            sending = send if scope["method"] == "HEAD" else _counted(answer, scope, receive, send)
            await self._app(scope, receive, sending)


def held_by(scope: Scope) -> Held:
    return scope[_HELD]


def _counted(held: Held, scope: Scope, receive: Receive, send: Send) -> Send:
    """`send`, which sends the answer to one request in pieces, as fast as the client reads."""
    is_refused = False

    async def sending(message: Message) -> None:
        nonlocal is_refused
        if message["type"] == "http.response.start":
            length = int(Headers(raw=message["headers"]).get("content-length", "0"))
            try:
                if length > PIECE:
                    held.add(length, one_at_least=True)
            except (RateLimitedError, UnavailableError) as error:
                is_refused = True
                await respond(error)(scope, receive, send)
            else:
                await send(message)
        elif not is_refused:
            body: bytes = message.get("body", b"")
            # A single large piece would stay in the server's buffer until the client has read all of it.
            last = max(len(body) - 1, 0) // PIECE * PIECE
            for begin in range(0, last, PIECE):
                await send({**message, "body": body[begin : begin + PIECE], "more_body": True})
            await send({**message, "body": body[last:]} if last else message)

    return sending
