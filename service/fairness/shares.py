"""What all share, and a tenant leaves some of to others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from .queue_time import queue_time
from .threshold import is_fair


@dataclass(frozen=True, slots=True)
class _Waiting:
    tenant: str
    count: int
    has_room: asyncio.Future[None]


class Shares:
    """Counts bytes, or whatever else is held, `most` of it at a time. The local caller, of no tenant, may hold all."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._by_tenant: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []

    def of(self, tenant: str) -> int:
        """How much a tenant holds."""
        return self._by_tenant[tenant]

    def take(self, tenant: str, count: int, *, one_at_least: bool = False) -> bool:
        """Hold so much more, unless others would have too little; whether it is held.

        With `one_at_least`, a tenant that holds nothing gets even what is more than its share.
        """
        is_first = one_at_least and not self._by_tenant[tenant]
        if not is_first and not self._has_room(tenant, count):
            return False
        self._hold(tenant, count)
        return True

    def give_back(self, tenant: str, count: int) -> None:
        """Hold it no more, and let go on who waits for it."""
        self.held -= count
        self._by_tenant[tenant] -= count
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]
        self._let_in()

    @asynccontextmanager
    async def room(self, tenant: str, count: int) -> AsyncGenerator[None]:
        """Wait until so much may be held, and hold it for the block; more than `most` when nothing else is held."""
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
        """Whoever came first goes first. What only its tenant's share keeps back, keeps nobody else back."""
        for waiting in tuple(self._waiting):
            if waiting.has_room.done():
                continue  # given up this moment
            if self._has_room(waiting.tenant, waiting.count) or not self.held:
                self._waiting.remove(waiting)
                self._hold(waiting.tenant, waiting.count)
                waiting.has_room.set_result(None)
            elif self.held + waiting.count > self.most:
                return

    def _has_room(self, tenant: str, count: int) -> bool:
        if not tenant:
            return self.held + count <= self.most
        return is_fair(self._by_tenant[tenant], self.held, self.most, count)

    def _hold(self, tenant: str, count: int) -> None:
        self._by_tenant[tenant] += count
        self.held += count
