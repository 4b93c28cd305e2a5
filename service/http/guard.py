"""The middleware that authenticates every request before it reaches a route."""

from __future__ import annotations

from collections.abc import Collection

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from service.identity.authenticator import Authenticator
from service.identity.caller import LOCAL, Caller, acting_as
from service.identity.policy import PUBLIC, check
from tensorkiln.errors import TensorkilnError
from tensorkiln.ignored_key import IGNORED, IGNORED_HEADER

from .problems import respond

_log = structlog.get_logger()


class Guard:
    """Authenticates each request and runs it on behalf of its caller, or answers with the error.

    The paths in `public` need no credential.
    """

    def __init__(self, app: ASGIApp, authenticator: Authenticator, public: Collection[str] = PUBLIC) -> None:
        self._app = app
        self._public = public
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
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
