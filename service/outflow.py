"""What large answers take of the memory until they are fetched."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tensorkiln.errors import RateLimitedError

from .fairness.shares import Shares
from .identity.caller import caller
from .problems import respond

PIECE: Final = 256 << 10
"""Bytes that are handed on at a time; an answer that is longer counts."""
_AGAIN_S: Final = 1


class Outflow:
    """Sends answers as fast as they are fetched. Large ones take `most` bytes, and a tenant leaves some of that.

    A tenant that fetches none yet gets one, however large.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._shares = Shares(most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] == "HEAD":
            await self._app(scope, receive, send)
            return
        answer = _Answer(self._shares, scope, receive, send)
        try:
            await self._app(scope, receive, answer.send)
        finally:
            answer.release()


class _Answer:
    """The answer to one request, on its way."""

    def __init__(self, shares: Shares, scope: Scope, receive: Receive, send: Send) -> None:
        self._shares = shares
        self._scope = scope
        self._receive = receive
        self._send = send
        self._tenant = caller().tenant
        self._held = 0
        self._is_refused = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif not self._is_refused:
            await self._go_on(message)

    def release(self) -> None:
        self._shares.give_back(self._tenant, self._held)

    async def _begin(self, start: Message) -> None:
        length = int(Headers(raw=start["headers"]).get("content-length", "0"))
        if length <= PIECE:
            await self._send(start)
        elif self._shares.take(self._tenant, length, one_at_least=True):
            self._held = length
            await self._send(start)
        else:
            self._is_refused = True
            await respond(self._refusal())(self._scope, self._receive, self._send)

    async def _go_on(self, message: Message) -> None:
        body: bytes = message.get("body", b"")
        if len(body) <= PIECE:
            await self._send(message)
            return
        # What is handed on in one piece is out of our hands at once, and in memory until the last of it is fetched.
        last = (len(body) - 1) // PIECE * PIECE
        for begin in range(0, last, PIECE):
            await self._send({**message, "body": body[begin : begin + PIECE], "more_body": True})
        await self._send({**message, "body": body[last:]})

    def _refusal(self) -> RateLimitedError:
        own, most = self._shares.of(self._tenant), self._shares.most
        return RateLimitedError(
            f"Answers of {own} bytes are on their way to your tenant; fetch them before you ask for more.",
            details={"limit": "fetched_bytes", "maximum": most, "actual": own, "retry_after_s": _AGAIN_S},
        )
