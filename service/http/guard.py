"""Nobody reaches a route without being known: the outermost layer of the application."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Final

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from service.identity.authenticator import Authenticator
from service.identity.caller import LOCAL, Caller, acting_as
from service.identity.policy import PUBLIC, check
from tensorkiln.errors import TensorkilnError

from .problems import respond

# A client that is still sending reads no answer: a little of what strangers send is thrown away for a moment.
_DISCARD_BYTES: Final = 8 << 20
_DISCARD_S: Final = 2.0

_log = structlog.get_logger()


class Guard:
    """Has every request run on behalf of its caller, or answers it with the reason why not.

    The paths in `public` are for everybody.
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
            # Whoever waits to be told to send a body has sent none.
            if Headers(scope=scope).get("expect", "").lower() != "100-continue":
                with suppress(TimeoutError):
                    async with asyncio.timeout(_DISCARD_S):
                        await _discard(receive)
            await respond(error)(scope, receive, send)
            return
        bind_contextvars(tenant=caller.tenant)
        with acting_as(caller):
            await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller:
        client = scope.get("client")
        headers = Headers(scope=scope)
        peer = client[0] if client else None
        if headers.get("x-forwarded-for") or headers.get("forwarded"):
            peer = ""  # behind a proxy everybody comes from the loopback
        return await self._authenticator.caller(headers.get("authorization"), peer, headers.get("host"))


async def _discard(receive: Receive) -> None:
    left = _DISCARD_BYTES
    while left > 0:
        message: Message = await receive()
        left -= len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return
