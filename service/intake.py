"""What the bodies of requests take of the memory, from their first byte until their answer."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from tensorkiln.errors import RateLimitedError, UnavailableError

from .fairness.shares import Shares
from .identity.caller import caller

_HELD: Final = "kiln.held"
_AGAIN_S: Final = 1


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
        if not self._memory.take(self._tenant, count):
            raise self._refusal()
        self._bytes += count

    def release(self) -> None:
        """Hold nothing any more."""
        self._memory.give_back(self._tenant, self._bytes)
        self._bytes = 0

    def _refusal(self) -> RateLimitedError | UnavailableError:
        most, own = self._memory.most, self._memory.of(self._tenant)
        if not self._tenant:
            return UnavailableError(
                "The requests under way fill the memory that there is for them; send this one again in a moment.",
                details={"held_bytes": self._memory.held, "maximum": most},
            )
        return RateLimitedError(
            f"The requests of your tenant that are under way hold {own} bytes, and this one wants more; come back "
            "when they are answered.",
            details={"limit": "held_bytes", "maximum": most, "actual": own, "retry_after_s": _AGAIN_S},
        )


class Intake:
    """Lets the bodies of all requests take at most `most` bytes, and those of one tenant a share that leaves room."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._memory = Shares(most)

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
