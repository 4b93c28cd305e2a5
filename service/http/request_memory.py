"""What the bodies of requests take of the memory, from their first byte until their answer."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from service.fairness.shares import Held, Shares

_HELD: Final = "kiln.held"


class RequestMemory:
    """Lets the bodies of all requests take at most `most` bytes, and those of one tenant a share that leaves room."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._memory = Shares(most, "held_bytes", "bytes of requests under way")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with Held(self._memory) as held:
            scope[_HELD] = held
            await self._app(scope, receive, send)


def held_by(scope: Scope) -> Held:
    """What the body of the request with this scope takes."""
    return scope[_HELD]
