"""Leases: a holder that sends no heartbeat for this long has lost what it held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Final

import structlog

from service import clock
from tensorkiln.errors import InfrastructureError

LEASE_S: Final = 5.0
"""Without a heartbeat for this long, a holder loses its lease: of a job, an order, an attempt, its place in a farm."""
BEAT_S: Final = 1.5
"""How often everybody says that it lives."""

_log = structlog.get_logger()


class Leases:
    """When each holder of something was last heard to say something new, by `now` in s.

    That is a clock of this process: no two have to agree. A heartbeat that was heard before is not new.
    """

    def __init__(self, now: Callable[[], float] = clock.monotonic) -> None:
        self._now = now
        self._heard: dict[str, tuple[int, float]] = {}

    def hear(self, holder: str, number: int) -> bool:
        """`holder` is found to have said for the `number`th time that it lives; whether it does."""
        if number > self._heard.get(holder, (-1, 0.0))[0]:
            self._heard[holder] = number, self._now()
        return self._now() - self._heard[holder][1] <= LEASE_S

    def forget(self, holder: str) -> None:
        """`holder` says no more that it lives."""
        self._heard.pop(holder, None)


async def keep(over: asyncio.Event, every_s: float, say: Callable[[int], Awaitable[bool]]) -> None:
    """Have `say` say that somebody lives, with numbers from 1 on, until it is `over` or `say` says that it is.

    What the store does not take now is said the next time.
    """
    for number in count(1):
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), every_s)
            return
        try:
            if not await say(number):
                return
        except InfrastructureError as error:
            _log.error("a heartbeat could not be written", reason=error.message)
