"""Claims and leases: the owner of some work has it until its lease ends.

A claim is a record in the store that only one process can create. After a lease without a heartbeat of the owner, by
its own clock, another process may replace the claim. Orders, attempts at compiles and jobs are claimed this way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from itertools import count
from typing import Any, Final, TypeAlias

import structlog

from service import clock
from tensorkiln.errors import InfrastructureError, UnavailableError

from .records import Records

LEASE_S: Final = 5.0
"""Without a heartbeat for this long, a holder loses its lease: of a job, an order, an attempt, its place in a farm."""
BEAT_S: Final = 1.5
"""Seconds between the heartbeats of a holder."""
_FORGOTTEN_S: Final = 600.0
"""Seconds of silence after which the lease of a holder is dropped, with its last heartbeat number."""
_TRIES: Final = 5

Record: TypeAlias = Mapping[str, Any]

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


class Claims:
    """Claims in `records`."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._locks = Leases()

    async def take(
        self,
        path: str,
        mine: Callable[[], Record],
        stands: Callable[[Record], Awaitable[bool]],
    ) -> Record | None:
        """Claim `path` with the record of `mine`. None on success, otherwise the valid claim of another owner.

        A claim that is not valid, by `stands`, is replaced. UnavailableError when the store accepts none.
        """
        for _ in range(_TRIES):
            # Read first: a read is cheaper than a write that fails.
            found = await self._records.get(path)
            if found is None:
                if await self._records.create(path, mine()):
                    return None
                continue
            is_taken = await stands(found) or not await self._replace(path, found, mine)
            return found if is_taken else None
        raise UnavailableError("The store accepts no claim, and does not return the existing one.")

    async def _replace(self, path: str, found: Record, mine: Callable[[], Record]) -> bool:
        """Replace the claim `found` by the caller's. False if it has changed, or another process replaces it."""
        lock = f"{path}.{sha256(repr(sorted(found.items())).encode()).hexdigest()[:32]}"
        if not await self._records.create(lock, {"holder": clock.token_hex(16)}):
            await self._free(lock)
            return False
        try:
            is_same = await self._records.get(path) == found
            if is_same:
                await self._records.put(path, mine())
        finally:
            await asyncio.shield(self._records.delete(lock))
        return is_same

    async def _free(self, lock: str) -> None:
        """Remove a lock that the same holder has had for a lease: it was lost while it replaced a claim."""
        held = await self._records.get(lock)
        holder = f"{lock} {held}"
        if held is not None and not self._locks.heartbeat(holder, 0) and not self._locks.is_alive(holder):
            await self._records.delete(lock)
