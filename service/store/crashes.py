"""Compiles that crashed, by action: how often, and with what, so that a graph that is poison is not tried for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

from service.trust.notary import Notary

from .records import Records

MAX_CRASHES: Final = 2
"""How often a compile that crashes is begun, by all workers together."""
REMEMBERED_S: Final = 600.0
"""Seconds after which a crash is forgotten. The compiler's build is part of the action: another one starts afresh."""
FOLDER: Final = "crashes/"
_SEAL: Final = "seal"


@dataclass(frozen=True, slots=True)
class Crash:
    """`attempts` that have crashed, the problem document of the last, and its time in seconds since the epoch."""

    attempts: int
    problem: Mapping[str, Any]
    at: float

    @property
    def is_final(self) -> bool:
        """Whether it is not to be tried again."""
        return self.attempts >= MAX_CRASHES


class Crashes:
    """Crashes in `records`, sealed by `notary`: one that is not is not believed."""

    def __init__(self, records: Records, notary: Notary, clock: Callable[[], float] = time.time) -> None:
        self._records = records
        self._notary = notary
        self._clock = clock

    async def find(self, key: str) -> Crash | None:
        """The crashes under `key`; None when there are none, or the last is too long ago."""
        record = await self._records.get(_path(key))
        if record is None:
            return None
        seal = record.pop(_SEAL, {})
        if not self._notary.has_sealed("crash", {"crash": key, **record}, seal):
            return None
        crash = Crash(**record)
        if self._clock() - crash.at < REMEMBERED_S:
            return crash
        await self._records.delete(_path(key))
        return None

    async def save(self, key: str, crash: Crash) -> None:
        """Remember how often what is under `key` has crashed."""
        content = asdict(crash)
        await self._records.put(_path(key), {**content, _SEAL: self._notary.seal({"crash": key, **content})})


def _path(key: str) -> str:
    name = sha256(key.encode()).hexdigest()
    return f"{FOLDER}{name[:2]}/{name}"
