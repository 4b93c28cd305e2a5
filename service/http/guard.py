"""The middlewares that authenticate every request, and start a few per pass of the event loop, tenants in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from service.fairness.lane import Bounds, FairLane
from service.fairness.turns import Turns
from service.identity.authenticator import Authenticator
from service.identity.caller import LOCAL, Caller, acting_as
from service.identity.policy import PUBLIC, check
from service.identity.register import TenantRecord
from tensorkiln.errors import TensorkilnError
from tensorkiln.ignored_key import IGNORED, IGNORED_HEADER

from .connections import MOST
from .problems import respond

_log = structlog.get_logger()
PER_PASS: Final = 2
"""Requests that may start in one pass of the event loop; a stored program is answered within one, a compile in 40."""


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
