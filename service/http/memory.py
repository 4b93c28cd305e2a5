"""Memory accounting of requests: bodies count until they are answered, large answers until they are sent."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.fairness.shares import Held, Shares
from tensorkiln.errors import RateLimitedError, UnavailableError

from .problems import respond

PIECE: Final = 256 << 10
"""Bytes of an answer sent at a time; a longer answer counts as large."""
_HELD: Final = "kiln.held"


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
