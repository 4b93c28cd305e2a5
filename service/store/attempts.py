"""Attempts at compiles, by action, so that a graph that crashes the compiler is tried MAX_CRASHES times in all.

An action has MAX_CRASHES places, each a signed record that only one process can create. It removes the record when the
compile ends without a crash. With a crash in every place, the action is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Final, Self

from service import clock
from service.process.periodic import Background
from service.timeouts import ATTEMPTS
from service.trust.notary import Notary
from tensorkiln.errors import UnavailableError
from tensorkiln.trust.verify import CLOCK_SKEW_S

from .claims import BEAT_S, Claims, Lease, Leases, heartbeats
from .records import Records

MAX_CRASHES: Final = ATTEMPTS
"""How often a compile that crashes is started, by all workers together."""
REMEMBERED_S: Final = 600.0
"""Seconds after which a crash is forgotten. The compiler's build is part of the action: another one starts afresh."""
FOLDER: Final = "crashes/"
_HOLDER: Final = "holder"


@dataclass(frozen=True, slots=True)
class Crash:
    """The problem document of an attempt that crashed, and its time in seconds since the epoch."""

    problem: Mapping[str, Any]
    at: float


class Crashes(Background):
    """Attempts and crashes in `records`, sealed by `notary`: records without a valid seal are ignored."""

    def __init__(self, records: Records, notary: Notary) -> None:
        super().__init__()
        self.records = records
        self._notary = notary
        self._leases = Leases()
        self._claims = Claims(records)

    async def begin(self, key: str) -> Attempt | Crash | None:
        """A new attempt under `key`; the last crash if every place has one; None while others hold places."""
        found: list[Crash] = []
        for path in _paths(key):
            attempt = Attempt(self, key, path, len(found) + 1)
            standing = await self._claims.take(path, attempt.claim, partial(self._stands, key, path))
            if standing is None:
                return attempt
            crash = self.read(key, standing)
            if crash is not None:
                found.append(crash)
        return max(found, key=lambda crash: crash.at) if len(found) == MAX_CRASHES else None

    async def _stands(self, key: str, path: str, record: Mapping[str, Any]) -> bool:
        """Whether a place is taken: by a valid crash that is recent, or by a holder that is alive."""
        if _HOLDER not in record:
            return self.read(key, record) is not None
        content = self._notary.opened("attempt", path, record)
        if content is None or abs(clock.time() - content["at"]) > CLOCK_SKEW_S:
            return False
        holder = f"{path} {record[_HOLDER]}"
        self._leases.heartbeat(holder, record["beat"])
        return self._leases.is_alive(holder)

    def read(self, key: str, record: Mapping[str, Any]) -> Crash | None:
        """The crash in a record; None when its seal is not valid, or its time is REMEMBERED_S or more from now."""
        if _HOLDER in record:
            return None
        content = self._notary.opened("crash", key, record)
        crash = Crash(**content) if content is not None else None
        return crash if crash is not None and abs(clock.time() - crash.at) < REMEMBERED_S else None

    async def write(self, path: str, key: str, problem: Mapping[str, Any]) -> None:
        await self.records.put(path, self._notary.sealed("crash", key, {"problem": problem}))

    def holding(self, path: str, holder: str, beat: int) -> dict[str, Any]:
        """The heartbeat with the number `beat` by which `holder` keeps the place at `path`."""
        return self._notary.sealed("attempt", path, {_HOLDER: holder, "beat": beat})

    async def release(self, path: str) -> None:
        """Give a place back."""
        with suppress(UnavailableError):  # the lease ends anyway
            await self.records.delete(path)


class Attempt:
    """One attempt, the `number`th as far as is known. It sends heartbeats inside the block."""

    def __init__(self, crashes: Crashes, key: str, path: str, number: int) -> None:
        self.number = number
        self._crashes = crashes
        self._key = key
        self._path = path
        self._holder = clock.token_hex(16)
        self._has_crashed = False
        self._lease = Lease()
        self._beating = AsyncExitStack()

    def claim(self) -> Mapping[str, Any]:
        """The record that claims the place. The lease begins now."""
        self._lease.renew()
        return self._crashes.holding(self._path, self._holder, 0)

    async def crash(self, problem: Awaitable[Mapping[str, Any]]) -> None:
        """Count the attempt as crashed with `problem`, even if the caller is cancelled, unless its place was lost."""
        self._has_crashed = True
        await asyncio.shield(self._crashes.see_to(self._count(problem)))

    async def _count(self, problem: Awaitable[Mapping[str, Any]]) -> None:
        try:
            document = await problem
        finally:
            await self._beating.aclose()
        if await self._is_held():
            await self._crashes.write(self._path, self._key, document)

    async def __aenter__(self) -> Self:
        await self._beating.enter_async_context(heartbeats(BEAT_S, self._beat))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._has_crashed:
            return
        await self._beating.aclose()
        if not self._lease.is_over:
            self._crashes.see_to(self._crashes.release(self._path))

    async def _is_held(self) -> bool:
        if not self._lease.is_over:
            return True
        record = await self._crashes.records.get(self._path)
        return record is not None and record.get(_HOLDER) == self._holder

    async def _beat(self, beat: int) -> bool:
        if not await self._is_held():
            return False
        said = Lease()
        await self._crashes.records.put(self._path, self._crashes.holding(self._path, self._holder, beat))
        self._lease = said
        return True


def _paths(key: str) -> list[str]:
    name = sha256(key.encode()).hexdigest()
    first = f"{FOLDER}{name[:2]}/{name}"
    return [first, *(f"{first}.{place}" for place in range(2, MAX_CRASHES + 1))]
