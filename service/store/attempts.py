"""Attempts at compiles, by action: who is at one, so that a graph that is poison is begun MAX_CRASHES times in all.

An action has MAX_CRASHES places. Whoever begins a compile takes one by creating its record, which only one can; it
is given back when the compile ends otherwise than by a crash. With a crash in every place, the graph is known.
Who takes a place has a key: what nobody with a key has said, or what was said before, keeps no place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from secrets import token_hex
from types import TracebackType
from typing import Any, Final, Self

from service.lease import BEAT_S, LEASE_S, Leases
from tensorkiln.errors import UnavailableError

from .crashes import FOLDER, MAX_CRASHES, Crash, Crashes

_TRIES: Final = 5
_HOLDER: Final = "holder"


class Attempts:
    """The attempts under `key`, and since when each of those who are at one has been silent."""

    def __init__(self, crashes: Crashes, key: str) -> None:
        self._crashes = crashes
        self._key = key
        self._leases = Leases(crashes.now)
        self._locked: dict[str, float] = {}

    async def begin(self) -> Attempt | Crash | None:
        """An attempt that is the caller's; the last crash when there were enough; None while others are at theirs.

        UnavailableError when the store does not say which of these it is.
        """
        found: list[Crash] = []
        for path in _paths(self._key):
            attempt = Attempt(self._crashes, self._key, path, len(found) + 1)
            # Where one has crashed, others are likely to have: whoever looks first has nothing to write.
            record = await self._crashes.records.get(path) if found else None
            for _ in range(_TRIES):
                if record is None and await attempt.claim():
                    return attempt
                record = record or await self._crashes.records.get(path)
                if record is None:
                    continue  # it was given back this moment, or damaged
                crash = self._crashes.read(self._key, record) if _HOLDER not in record else None
                if crash is not None:
                    found.append(crash)
                elif self._is_over(path, record) and await self._clear(path, record):
                    record = None
                    continue
                break
            else:
                raise UnavailableError("The store neither takes nor gives an attempt at a compile.")
        return max(found, key=lambda crash: crash.at) if len(found) == MAX_CRASHES else None

    def _is_over(self, path: str, record: Mapping[str, Any]) -> bool:
        if _HOLDER not in record:
            return True  # a crash that is forgotten, or that nobody believes
        if not self._crashes.is_holding(path, record):
            return True
        return not self._leases.hear(f"{path} {record[_HOLDER]}", record["beat"])

    async def _clear(self, path: str, record: Mapping[str, Any]) -> bool:
        """Whether a place is free that was as in `record`. Of several who clear it one does: others would meet the
        next one's claim there."""
        records, now = self._crashes.records, self._crashes.now()
        lock = f"{path}.{sha256(repr(sorted(record.items())).encode()).hexdigest()[:32]}"
        if not await records.create(lock, {}):
            if now - self._locked.setdefault(lock, now) > LEASE_S:
                await records.delete(lock)  # of one that was lost while it cleared
            return False
        try:
            is_same = await records.get(path) == record
            if is_same:
                await records.delete(path)
        finally:
            await asyncio.shield(records.delete(lock))
        return is_same


class Attempt:
    """One attempt, the `number`th as far as is known. Inside the block its maker says that it lives."""

    def __init__(self, crashes: Crashes, key: str, path: str, number: int) -> None:
        self.number = number
        self._crashes = crashes
        self._key = key
        self._path = path
        self._holder = token_hex(16)
        self._has_crashed = False
        self._said_at = crashes.now()
        self._beating: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()

    async def claim(self) -> bool:
        """Whether the place is the caller's now."""
        self._said_at = self._crashes.now()
        return await self._crashes.records.create(self._path, self._crashes.holding(self._path, self._holder, 0))

    async def crash(self, problem: Mapping[str, Any]) -> None:
        """It has crashed. One whose maker was silent for too long is not counted: others were begun in its place."""
        await self._stop()
        self._has_crashed = True
        if await self._is_held():
            await self._crashes.write(self._path, self._key, problem)

    async def __aenter__(self) -> Self:
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()
        if not self._has_crashed and self._crashes.now() - self._said_at <= LEASE_S:
            self._crashes.leave(self._path)

    async def _stop(self) -> None:
        """Say no more that it lives. What is being said is said to its end, so that it does not come after the last."""
        self._is_over.set()
        if self._beating is not None:
            await asyncio.wait({self._beating})

    async def _is_held(self) -> bool:
        if self._crashes.now() - self._said_at <= LEASE_S:
            return True
        record = await self._crashes.records.get(self._path)
        return record is not None and record.get(_HOLDER) == self._holder

    async def _beat(self) -> None:
        beat = 0
        while not self._is_over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_over.wait(), BEAT_S)
                return
            beat += 1
            with suppress(UnavailableError):
                if not await self._is_held():
                    return
                at = self._crashes.now()
                await self._crashes.records.put(self._path, self._crashes.holding(self._path, self._holder, beat))
                self._said_at = at


def _paths(key: str) -> list[str]:
    name = sha256(key.encode()).hexdigest()
    first = f"{FOLDER}{name[:2]}/{name}"
    return [first, *(f"{first}.{place}" for place in range(2, MAX_CRASHES + 1))]
