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
    """What one holder has until it was silent for LEASE_S, since `renewed_at` in s of the clock of this process.

    No two clocks have to agree. A heartbeat with a number that is not above all before is not new.
    """

    def __init__(self) -> None:
        self._number = -1
        self.renew()

    def renew(self) -> None:
        """It lasts as long again."""
        self.renewed_at = clock.monotonic()

    def heartbeat(self, number: int) -> bool:
        """Renew it by the heartbeat with this `number`, unless that is not new; whether it is."""
        is_new = number > self._number
        if is_new:
            self._number = number
            self.renew()
        return is_new

    @property
    def is_over(self) -> bool:
        """Whether the holder was silent for too long."""
        return clock.monotonic() - self.renewed_at > LEASE_S


class Leases:
    """The lease of each holder that has sent a heartbeat."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}

    def heartbeat(self, holder: str, number: int) -> bool:
        """As `Lease` has it."""
        if holder not in self._leases:
            long_ago = clock.monotonic() - _FORGOTTEN_S
            self._leases = {name: lease for name, lease in self._leases.items() if lease.renewed_at > long_ago}
            self._leases[holder] = Lease()
        return self._leases[holder].heartbeat(number)

    def renew(self, holder: str) -> None:
        """`holder` has a whole lease again, whatever its number."""
        self._leases[holder] = Lease()

    def is_alive(self, holder: str) -> bool:
        """Whether `holder` has sent a new heartbeat within a lease."""
        return holder in self._leases and not self._leases[holder].is_over

    def forget(self, holder: str) -> None:
        """`holder` has given its lease back."""
        self._leases.pop(holder, None)


async def send_heartbeats(over: asyncio.Event, every_s: float, send: Callable[[int], Awaitable[bool]]) -> None:
    """`send` a heartbeat again and again, with numbers from 1 on, until it is `over` or `send` returns False.

    One that the store does not take is not repeated: the next comes.
    """
    for number in count(1):
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), every_s)
            return
        try:
            if not await send(number):
                return
        except InfrastructureError as error:
            _log.error("a heartbeat could not be written", reason=error.message)
