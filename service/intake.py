"""What the bodies of requests take of the memory, from their first byte until their answer."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from .fairness.shares import Shares
from .identity.caller import caller

_HELD: Final = "kiln.held"


class Held:
    """What one request holds."""

    def __init__(self, memory: Shares) -> None:
        self._memory = memory
        self._tenant = caller().tenant
        self._bytes = 0

    @staticmethod
    def of(scope: Scope) -> Held:
        """That of the request with this scope."""
        return scope[_HELD]

    def add(self, count: int) -> None:
        """Hold so many bytes more. RateLimitedError or UnavailableError when others would have too few."""
        self._memory.take(self._tenant, count)
        self._bytes += count

    def release(self) -> None:
        """Hold nothing any more."""
        self._memory.give_back(self._tenant, self._bytes)
        self._bytes = 0


class Intake:
    """Lets the bodies of all requests take at most `most` bytes, and those of one tenant a share that leaves room."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._memory = Shares(most, "held_bytes", "bytes of requests under way")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[_HELD] = held = Held(self._memory)
        try:
            await self._app(scope, receive, send)
        finally:
            held.release()
