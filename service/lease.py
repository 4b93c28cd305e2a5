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
_FORGOTTEN_S: Final = 600.0
"""After which nobody remembers a holder. No heartbeat that is as old is believed, should it be there again."""

_log = structlog.get_logger()


class Lease:
    """What one holder has until it was silent for LEASE_S, since `heard_at` in s of the clock of this process.

    No two clocks have to agree. A heartbeat that was heard before, or before a later one, is not new.
    """

    def __init__(self) -> None:
        self._number = -1
        self.renew()

    def renew(self) -> None:
        """It lasts as long again."""
        self.heard_at = clock.monotonic()

    def hear(self, number: int) -> bool:
        """The holder is found to have said for the `number`th time that it lives; whether that is new."""
        is_new = number > self._number
        if is_new:
            self._number = number
            self.renew()
        return is_new

    @property
    def is_over(self) -> bool:
        """Whether the holder was silent for too long."""
        return clock.monotonic() - self.heard_at > LEASE_S


class Leases:
    """The lease of each holder that was heard."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}

    def hear(self, holder: str, number: int) -> bool:
        """As `Lease` has it."""
        if holder not in self._leases:
            long_ago = clock.monotonic() - _FORGOTTEN_S
            self._leases = {name: lease for name, lease in self._leases.items() if lease.heard_at > long_ago}
            self._leases[holder] = Lease()
        return self._leases[holder].hear(number)

    def renew(self, holder: str) -> None:
        """`holder` has a whole lease again, whatever its number."""
        self._leases[holder] = Lease()

    def lives(self, holder: str) -> bool:
        """Whether `holder` has said something new within a lease."""
        return holder in self._leases and not self._leases[holder].is_over

    def forget(self, holder: str) -> None:
        """`holder` says no more that it lives."""
        self._leases.pop(holder, None)


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
