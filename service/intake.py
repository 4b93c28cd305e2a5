"""What the bodies of requests take of the memory, from their first byte until their answer."""

from __future__ import annotations

from collections import Counter
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from tensorkiln.errors import RateLimitedError, UnavailableError

from .fairness.threshold import is_fair
from .identity.caller import caller

_HELD: Final = "kiln.held"
_AGAIN_S: Final = 1


class Held:
    """What one request holds."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._tenant = caller().tenant
        self._bytes = 0

    @staticmethod
    def of(scope: Scope) -> Held:
        """That of the request with this scope."""
        return scope[_HELD]

    def add(self, count: int) -> None:
        """Hold so many bytes more. RateLimitedError or UnavailableError when others would have too few."""
        self._intake.take(self._tenant, count)
        self._bytes += count

    def release(self) -> None:
        """Hold nothing any more."""
        self._intake.give_back(self._tenant, self._bytes)
        self._bytes = 0


class Intake:
    """Lets the bodies of all requests take at most `most` bytes, and those of one tenant a share that leaves room."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._taken = 0
        self._by_tenant: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[_HELD] = held = Held(self)
        try:
            await self._app(scope, receive, send)
        finally:
            held.release()

    def take(self, tenant: str, count: int) -> None:
        """Count bytes of a tenant."""
        own = self._by_tenant[tenant]
        if not tenant and self._taken + count > self._most:
            raise UnavailableError(
                "The requests under way fill the memory that there is for them; send this one again in a moment.",
                details={"held_bytes": self._taken, "maximum": self._most},
            )
        if tenant and not is_fair(own, self._taken, self._most, count):
            raise RateLimitedError(
                f"The requests of your tenant that are under way hold {own} bytes, and this one wants more; come back "
                "when they are answered.",
                details={"limit": "held_bytes", "maximum": self._most, "actual": own, "retry_after_s": _AGAIN_S},
            )
        self._by_tenant[tenant] += count
        self._taken += count

    def give_back(self, tenant: str, count: int) -> None:
        """Count them no more."""
        self._taken -= count
        self._by_tenant[tenant] -= count
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]
