"""Single-flight across queues: the first caller that gets a turn does the work, and the others share its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from service.fairness.lane import Turn
from service.fairness.turns import Turns

from .flights import Flights


class Overtaken(Exception):
    """Another caller has started the work: `flights` has it under its shared key now."""


class FirstTurns:
    """Waits for turns to do shared work. `flights` has it under a key of each waiter, then under its shared key."""

    def __init__(self, turns: Turns, flights: Flights[Any, Any]) -> None:
        self._turns = turns
        self._flights = flights
        self._waiting: dict[Hashable, set[asyncio.Timeout]] = {}

    @asynccontextmanager
    async def turn(self, work: Hashable, flight: Hashable, size: int) -> AsyncGenerator[Turn]:
        """As `Turns.turn`, for the work under `flight`; on its turn it is shared as `work`. Overtaken if another is."""
        async with AsyncExitStack() as held:
            turn = await self._own(work, held, size)
            if self._flights.has(work):  # its turn came in the same moment
                turn.cost_s = 0.0
                raise Overtaken
            self._flights.share(flight, work)
            for wait in self._waiting.pop(work, ()):
                wait.reschedule(asyncio.get_running_loop().time())
            yield turn

    async def _own(self, work: Hashable, held: AsyncExitStack, size: int) -> Turn:
        if self._flights.has(work):
            raise Overtaken
        try:
            async with asyncio.timeout(None) as wait:
                waiting = self._waiting.setdefault(work, set())
                waiting.add(wait)
                try:
                    return await held.enter_async_context(self._turns.turn(size))
                finally:
                    waiting.discard(wait)
                    if not waiting and self._waiting.get(work) is waiting:
                        del self._waiting[work]
        except TimeoutError:
            raise Overtaken from None
