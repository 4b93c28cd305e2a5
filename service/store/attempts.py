"""Attempts at compiles, by action: who is at one, so that a graph that is poison is begun MAX_CRASHES times in all.

An action has MAX_CRASHES places. Whoever begins a compile takes one by creating its record, which only one can; it
is given back when the compile ends otherwise than by a crash. With a crash in every place, the graph is known.
Who takes a place has a key: what nobody with a key has said, or what was said before, keeps no place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from functools import partial
from hashlib import sha256
from types import TracebackType
from typing import Any, Final, Self

from service import clock
from service.lease import BEAT_S, Lease, Leases, send_heartbeats

from .claims import Claims
from .crashes import FOLDER, MAX_CRASHES, Crash, Crashes

_HOLDER: Final = "holder"


class Attempts:
    """The attempts under `key`, and since when each of those who are at one has been silent."""

    def __init__(self, crashes: Crashes, key: str) -> None:
        self._crashes = crashes
        self._key = key
        self._leases = Leases()
        self._claims = Claims(crashes.records)
        self._has_met_others = False

    async def begin(self) -> Attempt | Crash | None:
        """An attempt that is the caller's; the last crash when there were enough; None while others are at theirs.

        UnavailableError when the store does not say which of these it is.
        """
        found: list[Crash] = []
        for path in _paths(self._key):
            attempt = Attempt(self._crashes, self._key, path, len(found) + 1)
            # Where others are, or one has crashed, more are likely: whoever looks first has nothing to write.
            known = await self._crashes.records.get(path) if found or self._has_met_others else None
            standing = await self._claims.take(path, attempt.claim, partial(self._stands, path), known)
            if standing is None:
                return attempt
            crash = self._crash(standing)
            if crash is not None:
                found.append(crash)
        self._has_met_others = True
        return max(found, key=lambda crash: crash.at) if len(found) == MAX_CRASHES else None

    def _crash(self, record: Mapping[str, Any]) -> Crash | None:
        return self._crashes.read(self._key, record) if _HOLDER not in record else None

    async def _stands(self, path: str, record: Mapping[str, Any]) -> bool:
        """Whether a place is taken: by a crash that is believed and not forgotten, or by somebody who lives."""
        if _HOLDER not in record:
            return self._crash(record) is not None
        if not self._crashes.is_holding(path, record):
            return False
        holder = f"{path} {record[_HOLDER]}"
        self._leases.heartbeat(holder, record["beat"])
        return self._leases.is_alive(holder)


class Attempt:
    """One attempt, the `number`th as far as is known. Inside the block its maker says that it lives."""

    def __init__(self, crashes: Crashes, key: str, path: str, number: int) -> None:
        self.number = number
        self._crashes = crashes
        self._key = key
        self._path = path
        self._holder = clock.token_hex(16)
        self._has_crashed = False
        self._lease = Lease()
        self._beating: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()

    def claim(self) -> Mapping[str, Any]:
        """The record by which the place is the caller's from now on."""
        self._lease.renew()
        return self._crashes.holding(self._path, self._holder, 0)

    async def crash(self, problem: Awaitable[Mapping[str, Any]]) -> None:
        """It has crashed, and is counted even if nobody waits for it any more. `problem` gives its document.

        One whose maker was silent for too long is not counted: others were begun in its place.
        """
        self._has_crashed = True
        await asyncio.shield(self._crashes.see_to(self._count(problem)))

    async def _count(self, problem: Awaitable[Mapping[str, Any]]) -> None:
        try:
            document = await problem
        finally:
            await self._stop()
        if await self._is_held():
            await self._crashes.write(self._path, self._key, document)

    async def __aenter__(self) -> Self:
        self._beating = asyncio.create_task(send_heartbeats(self._is_over, BEAT_S, self._beat))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._has_crashed:
            return
        await self._stop()
        if not self._lease.is_over:
            self._crashes.release(self._path)

    async def _stop(self) -> None:
        """Say no more that it lives. What is being said is said to its end, so that it does not come after the last."""
        self._is_over.set()
        if self._beating is not None:
            await asyncio.wait({self._beating})

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
