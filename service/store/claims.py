"""Claims: the owner of some work, as a record in the store that only one process can create.

After a lease without a heartbeat of the owner, by its own clock, another process may replace the claim. Orders,
attempts at compiles and jobs are claimed this way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Any, Final, TypeAlias

from service import clock
from service.lease import Leases
from tensorkiln.errors import UnavailableError

from .records import Records

_TRIES: Final = 5

Record: TypeAlias = Mapping[str, Any]


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
