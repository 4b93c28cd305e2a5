"""Leases: a holder without a heartbeat for LEASE_S seconds loses what it held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Final

import structlog

from service import clock
from tensorkiln.errors import InfrastructureError

LEASE_S: Final = 5.0
"""Without a heartbeat for this long, a holder loses its lease: of a job, an order, an attempt, its place in a farm."""
BEAT_S: Final = 1.5
"""Seconds between the heartbeats of a holder."""
_FORGOTTEN_S: Final = 600.0
"""Seconds of silence after which the lease of a holder is dropped, with its last heartbeat number."""

_log = structlog.get_logger()


class Lease:
    """The lease of one holder: it ends LEASE_S seconds after `renewed_at`, by the monotonic clock of this process.

    No two clocks have to agree. A heartbeat counts only if its number is above all earlier ones.
    """

    def __init__(self) -> None:
        self._number = -1
        self.renew()

    def renew(self) -> None:
        self.renewed_at = clock.monotonic()

    def heartbeat(self, number: int) -> bool:
        """Renew the lease if `number` is new; return whether it is."""
        is_new = number > self._number
        if is_new:
            self._number = number
            self.renew()
        return is_new

    @property
    def is_over(self) -> bool:
        return clock.monotonic() - self.renewed_at > LEASE_S


class Leases:
    """The lease of each holder that has sent a heartbeat."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}

    def heartbeat(self, holder: str, number: int) -> bool:
        """Record a heartbeat as `Lease.heartbeat` does; the first one of a holder makes its lease."""
        if holder not in self._leases:
            long_ago = clock.monotonic() - _FORGOTTEN_S
            self._leases = {name: lease for name, lease in self._leases.items() if lease.renewed_at > long_ago}
            self._leases[holder] = Lease()
        return self._leases[holder].heartbeat(number)

    def renew(self, holder: str) -> None:
        """Give `holder` a new lease, which forgets its last number."""
        self._leases[holder] = Lease()

    def is_alive(self, holder: str) -> bool:
        """Whether `holder` has sent a new heartbeat within a lease."""
        return holder in self._leases and not self._leases[holder].is_over

    def forget(self, holder: str) -> None:
        """Drop the lease of `holder`, which has given it back."""
        self._leases.pop(holder, None)


@asynccontextmanager
async def heartbeats(
    every_s: float, send: Callable[[int], Awaitable[bool]], end_s: float | None = None
) -> AsyncGenerator[None]:
    """Call `send` every `every_s` seconds during the block, with numbers from 1 on, until it returns False.

    A heartbeat that is being written is awaited, up to `end_s` seconds, so that it does not replace a later record.
    """
    over = asyncio.Event()
    sending = asyncio.create_task(_send_until(over, every_s, send))
    try:
        yield
    finally:
        over.set()
        await asyncio.wait({sending}, timeout=end_s)
        sending.cancel()


async def _send_until(over: asyncio.Event, every_s: float, send: Callable[[int], Awaitable[bool]]) -> None:
    for number in count(1):
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), every_s)
            return
        try:
            if not await send(number):
                return
        except InfrastructureError as error:
            _log.error("a heartbeat could not be written", reason=error.message)
