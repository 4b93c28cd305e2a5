"""What large answers take of the memory until they are fetched."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.coding.encode import UNCODED
from service.fairness.shares import Held, Shares
from tensorkiln.errors import RateLimitedError, UnavailableError

from .problems import respond

PIECE: Final = 256 << 10
"""Bytes that are handed on at a time; an answer that is longer counts."""


class ResponseMemory:
    """Sends answers as fast as they are fetched. Large ones take `most` bytes, and a tenant leaves some of that.

    A tenant that fetches none yet gets one, however large.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._shares = Shares(most, "fetched_bytes", "bytes of large answers that are to be fetched")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] == "HEAD":
            await self._app(scope, receive, send)
            return
        with Held(self._shares) as held:
            await self._app(scope, receive, _Answer(held, scope, receive, send).send)


class _Answer:
    """The answer to one request, on its way."""

    def __init__(self, held: Held, scope: Scope, receive: Receive, send: Send) -> None:
        self._held = held
        self._scope = scope
        self._receive = receive
        self._send = send
        self._is_refused = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif not self._is_refused:
            await self._go_on(message)

    async def _begin(self, start: Message) -> None:
        length = int(Headers(raw=start["headers"]).get("content-length", "0"))
        if length > PIECE:
            try:
                # Until it is sent, what was coded is held as well.
                self._held.add(length + start.get(UNCODED, 0), one_at_least=True)
            except (RateLimitedError, UnavailableError) as error:
                self._is_refused = True
                await respond(error)(self._scope, self._receive, self._send)
                return
        await self._send(start)

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
