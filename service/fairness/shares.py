"""A shared resource of which a tenant leaves some to others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

from service.identity.caller import caller
from tensorkiln.errors import RateLimitedError, UnavailableError

from .queue_time import queue_time

ALPHA: Final = 3
"""One tenant alone gets ALPHA / (ALPHA + 1) of it, two get ALPHA / (2 ALPHA + 1) each: some is left for the next."""
_AGAIN_S: Final = 1


def is_fair(own: int, taken: int, most: int, more: int = 1) -> bool:
    """Whether a tenant that has `own` of the `taken` may have `more`, of `most` in all.

    A share may grow to a multiple of what is free (A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for
    shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2), 1998).
    """
    return taken + more <= most and own + more <= ALPHA * (most - taken)


@dataclass(frozen=True, slots=True)
class _Waiting:
    tenant: str
    count: int
    has_room: asyncio.Future[None]


class Shares:
    """Counts what tenants hold of a resource, `most` in all; the local caller, which has no tenant, may hold all."""

    def __init__(self, most: int, limit: str = "", what: str = "") -> None:
        self.held = 0
        self._most = most
        self._limit = limit
        self._what = what
        self._by_tenant: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []

    def take(self, tenant: str, count: int, *, one_at_least: bool = False) -> None:
        """Hold `count` more. RateLimitedError above the tenant's share, UnavailableError without tenants.

        With `one_at_least`, a tenant that holds nothing may exceed its share.
        """
        is_first = one_at_least and not self._by_tenant[tenant]
        if not is_first and not self._has_room(tenant, count):
            raise self._refusal(tenant)
        self._hold(tenant, count)

    def give_back(self, tenant: str, count: int) -> None:
        """Release `count`, and admit callers that wait for room."""
        self.held -= count
        self._by_tenant[tenant] -= count
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]
        self._let_in()

    @asynccontextmanager
    async def room(self, tenant: str, count: int) -> AsyncGenerator[None]:
        """Wait until `count` may be held, and hold it for the block; even above `most` when nothing else is held."""
        waiting = _Waiting(tenant, count, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._let_in()
        try:
            with queue_time().with_more(waiting=1):
                await waiting.has_room
        except BaseException:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                self._let_in()
            else:
                self.give_back(tenant, count)
            raise
        try:
            yield
        finally:
            self.give_back(tenant, count)

    def _let_in(self) -> None:
        """Admit in order of arrival; a caller blocked only by its tenant's share does not block others."""
        for waiting in tuple(self._waiting):
            if waiting.has_room.done():
                continue  # given up this moment
            if self._has_room(waiting.tenant, waiting.count) or not self.held:
                self._waiting.remove(waiting)
                self._hold(waiting.tenant, waiting.count)
                waiting.has_room.set_result(None)
            elif self.held + waiting.count > self._most:
                return

    def _refusal(self, tenant: str) -> RateLimitedError | UnavailableError:
        if not tenant:
            return UnavailableError(
                f"{self.held} of {self._most} {self._what} are taken; send the request again in a moment.",
                details={self._limit: self.held, "maximum": self._most},
            )
        own = self._by_tenant[tenant]
        return RateLimitedError(
            f"Your tenant has {own} of {self._most} {self._what}, and this request exceeds its share; retry soon.",
            details={"limit": self._limit, "maximum": self._most, "actual": own, "retry_after_s": _AGAIN_S},
        )

    def _has_room(self, tenant: str, count: int) -> bool:
        if not tenant:
            return self.held + count <= self._most
        return is_fair(self._by_tenant[tenant], self.held, self._most, count)

    def _hold(self, tenant: str, count: int) -> None:
        self._by_tenant[tenant] += count
        self.held += count


class Held:
    """The units of `shares` that the current caller holds during a block."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._tenant = caller().tenant
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        """Release everything before the end of the block."""
        count, self._count = self._count, 0
        self._shares.give_back(self._tenant, count)

    def add(self, count: int, *, one_at_least: bool = False) -> None:
        """Hold `count` more; the errors of `Shares.take`."""
        self._shares.take(self._tenant, count, one_at_least=one_at_least)
        self._count += count
