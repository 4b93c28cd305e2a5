"""Who takes part in a farm, as the store has it: processes of workers, and services that have orders.

Each writes a file of its own again and again. What is read is only which files there are, and whether they have been
written since: no clock has to agree with another.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from service.build_id import build
from service.store.inventory import items
from service.store.location import ObjectStore
from service.store.records import Records

Role: TypeAlias = Literal["worker", "unfit", "service"]
"""`worker` is a process that compiles, `unfit` one whose canary fails, `service` one that has orders."""

SIGN_S: Final = 1.5
"""How often everybody says that it lives."""
LEASE_S: Final = 8.0
"""Whoever has not said so for so long is no more."""
_FOLDER: Final = "members/"
_LONG_GONE_S: Final = 3600.0
_LEAST: Final = 2
"""Orders that are given beyond the share, so that the last of many services has some."""


@dataclass(frozen=True, slots=True)
class _Sign:
    written: float
    seen_at: float


class Roster:
    """The members with the same build of the compiler as this process: others get no orders from here.

    `now` is in seconds, for leases.
    """

    def __init__(self, store: ObjectStore, records: Records, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._records = records
        self._now = now
        self._folder = f"{_FOLDER}{build().build_id[:16]}/"
        self._signs: dict[str, _Sign] = {}

    async def sign(self, role: Role, name: str, **about: Any) -> None:
        """Say that `name` lives as `role`; `about` is for whoever looks into the store."""
        await self._records.put(self._path(role, name), about)

    async def leave(self, role: Role, name: str) -> None:
        """`name` is that no more."""
        await self._records.delete(self._path(role, name))

    async def look(self) -> None:
        """See who has signed."""
        now, signs = self._now(), dict[str, _Sign]()
        async for item in items(self._store, self._folder):
            before = self._signs.get(item.path)
            if before is None:
                # Of one that went long before this process came.
                seen_at = now if time.time() - item.used < _LONG_GONE_S else -math.inf
                signs[item.path] = _Sign(item.used, seen_at)
            else:
                signs[item.path] = before if before.written == item.used else _Sign(item.used, now)
        self._signs = signs

    async def sweep(self) -> None:
        """Remove what those left behind that are long gone."""
        async for item in items(self._store, _FOLDER):
            if time.time() - item.used > _LONG_GONE_S:
                await self._records.delete(item.path)

    def count(self, role: Role) -> int:
        """How many have signed as `role` within a lease, as it was last seen."""
        since, beginning = self._now() - LEASE_S, self._path(role, "")
        return sum(sign.seen_at >= since for path, sign in self._signs.items() if path.startswith(beginning))

    def lacks_workers(self) -> str:
        """Why nobody would begin an order; empty where somebody would."""
        if self.count("worker"):
            return ""
        unfit = self.count("unfit")
        return (
            f"of the farm's workers {unfit} processes live, and none of them compiles a small graph"
            if unfit
            else "no worker of the farm says that it lives"
        )

    def width(self, most: int, ahead: float) -> int:
        """How many orders a service best has at the broker: its share of `ahead` for each process of a worker.

        What is in the broker's queue has its turn before everything that comes later, whosesoever it is: the rest is
        better off where tenants take turns. `most` at most, and where no worker signs: what is handed out is refused
        at once when the broker is gone, with which workers go too, and what waits for its turn is not.
        """
        if not self.count("worker"):
            return most
        share = ahead * self.count("worker") / max(1, self.count("service"))
        return min(most, _LEAST + math.ceil(share))

    def _path(self, role: Role, name: str) -> str:
        return f"{self._folder}{role}.{name}"
