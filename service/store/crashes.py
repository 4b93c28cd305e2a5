"""Crashed compiles, by action, so that a graph that crashes the compiler is not tried for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from service import clock
from service.timeouts import ATTEMPTS
from service.trust.notary import Notary
from tensorkiln.errors import UnavailableError
from tensorkiln.trust.verify import CLOCK_SKEW_S

from .records import Records

MAX_CRASHES: Final = ATTEMPTS
"""How often a compile that crashes is started, by all workers together."""
REMEMBERED_S: Final = 600.0
"""Seconds after which a crash is forgotten. The compiler's build is part of the action: another one starts afresh."""
FOLDER: Final = "crashes/"


@dataclass(frozen=True, slots=True)
class Crash:
    """The problem document of an attempt that crashed, and its time in seconds since the epoch."""

    problem: Mapping[str, Any]
    at: float


class Crashes:
    """Crashes in `records`, sealed by `notary`: records without a valid seal are ignored."""

    def __init__(self, records: Records, notary: Notary) -> None:
        self.records = records
        self._notary = notary
        self._writing: set[asyncio.Task[None]] = set()

    def read(self, key: str, record: Mapping[str, Any]) -> Crash | None:
        """The crash in a record; None when its seal is not valid, or its time is REMEMBERED_S or more from now."""
        content = self._notary.opened("crash", key, record)
        crash = Crash(**content) if content is not None else None
        return crash if crash is not None and abs(clock.time() - crash.at) < REMEMBERED_S else None

    async def write(self, path: str, key: str, problem: Mapping[str, Any]) -> None:
        """Write a crash to the place at `path`."""
        await self.records.put(path, self._notary.sealed("crash", key, asdict(Crash(problem, clock.time()))))

    def holding(self, path: str, holder: str, beat: int) -> dict[str, Any]:
        """The heartbeat with the number `beat` by which `holder` keeps the place at `path`."""
        return self._notary.sealed("attempt", path, {"holder": holder, "beat": beat, "at": clock.time()})

    def is_holding(self, path: str, record: Mapping[str, Any]) -> bool:
        """Whether a record is a valid heartbeat for this place, at most CLOCK_SKEW_S from now."""
        content = self._notary.opened("attempt", path, record)
        return content is not None and abs(clock.time() - content["at"]) <= CLOCK_SKEW_S

    def release(self, path: str) -> None:
        """Give a place back, in the background."""
        self.see_to(self._remove(path))

    def see_to(self, writing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `writing` in a task, which goes on if the caller is cancelled."""
        task = asyncio.create_task(writing)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return task

    async def settle(self) -> None:
        """Wait until the tasks of `see_to` are done."""
        await asyncio.gather(*self._writing, return_exceptions=True)

    async def _remove(self, path: str) -> None:
        with suppress(UnavailableError):  # the lease ends anyway
            await self.records.delete(path)
