"""Who takes part in a farm, as the store has it: workers, and services that have orders.

Each writes a file of its own again and again. Of a service it is seen only whether it has been written since. What a
worker writes is signed with its key, for its role and its name, and counts once: what is put there again is no sign.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from service import clock
from service.lease import LEASE_S
from service.store.inventory import Item, items
from service.store.location import ObjectStore
from service.store.records import Records
from tensorkiln.compiler_build import build

from .generation import generation
from .statements import FRESH_S, Statements

Role: TypeAlias = Literal["worker", "unfit", "service"]
"""`worker` is one that compiles, `unfit` one whose canary fails, `service` a service that has orders."""

_FOLDER: Final = "members/"
_SIGNED: Final = frozenset({"worker", "unfit"})
_LONG_GONE_S: Final = 3600.0
_LEAST: Final = 2
"""Orders that are given beyond the share, so that the last of many services has some."""


@dataclass(frozen=True, slots=True)
class _Sign:
    """A file as it was `written`, and when it was last `seen_at` to say something new.

    `places` is how many orders its writer does at a time. `is_left` is what a worker left behind that went before this
    process came.
    """

    written: float
    seen_at: float
    places: int = 0
    is_left: bool = False


class Roster:
    """The members with the same build of the compiler as this process: others get no orders from here.

    Workers sign with `statements`, and are believed by it. `now` is in seconds, for leases.
    """

    def __init__(
        self,
        store: ObjectStore,
        records: Records,
        statements: Statements,
        now: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._store = store
        self._records = records
        self._statements = statements
        self._now = now
        self._folder = f"{_FOLDER}{generation()}/"
        self._signs: dict[str, _Sign] = {}
        # The number of each worker's last sign, and when it was met: what was removed may be put there again.
        self._last: dict[str, tuple[int, float]] = {}
        self._unbelieved = 0
        self._made = 0

    async def sign(self, role: Role, name: str, places: int = 0) -> None:
        """Say that `name` lives as `role`, a worker that does so many orders at a time."""
        self._made += 1
        content = {"number": self._made, "places": places}
        if role in _SIGNED:
            content = self._statements.signed("member", _about(role, name), content)
        await self._records.put(self._path(role, name), content)

    async def leave(self, role: Role, name: str) -> None:
        """`name` is that no more."""
        await self._records.delete(self._path(role, name))

    async def look(self) -> None:
        """See who has signed."""
        listed = [item async for item in items(self._store, self._folder)]
        signs = await asyncio.gather(*map(self._sign, listed))
        self._signs = {item.path: sign for item, sign in zip(listed, signs, strict=True)}
        self._unbelieved = sum(
            sign.seen_at == -math.inf and not sign.is_left and self._role_and_name(item.path)[0] in _SIGNED
            for item, sign in zip(listed, signs, strict=True)
        )
        long_ago = self._now() - 2 * FRESH_S
        self._last = {name: last for name, last in self._last.items() if last[1] > long_ago}

    async def _sign(self, item: Item) -> _Sign:
        before = self._signs.get(item.path)
        if before is not None and before.written == item.used:
            return before
        role, name = self._role_and_name(item.path)
        if role in _SIGNED:
            record = await self._records.get(item.path)
            # A file that is written again while this looks is of somebody who lives, and whose clock may be wrong.
            if before is None and self._statements.has_lived("member", _about(role, name), record, item.used):
                return _Sign(item.used, -math.inf, is_left=True)
            stated = self._statements.believed("member", _about(role, name), item.path, record)
            if stated is not None and self._is_new(name, stated["number"]):
                return _Sign(item.used, self._now(), stated["places"])
        # Not of one that went long before this process came.
        elif before is not None or clock.time() - item.used < _LONG_GONE_S:
            return _Sign(item.used, self._now())
        return _Sign(item.used, -math.inf) if before is None else _Sign(item.used, before.seen_at, before.places)

    def _is_new(self, name: str, number: int) -> bool:
        """Whether a worker has signed this after all that is known of it, in whatever role."""
        if number <= self._last.get(name, (0, 0.0))[0]:
            return False
        self._last[name] = number, self._now()
        return True

    async def sweep(self) -> None:
        """Remove what those left behind that are long gone."""
        async for item in items(self._store, _FOLDER):
            if clock.time() - item.used > _LONG_GONE_S:
                await self._records.delete(item.path)

    def count(self, role: Role) -> int:
        """How many have signed as `role` within a lease, as it was last seen."""
        return len(self._living(role))

    def _living(self, role: Role) -> list[_Sign]:
        since, beginning = self._now() - LEASE_S, self._path(role, "")
        return [sign for path, sign in self._signs.items() if path.startswith(beginning) and sign.seen_at >= since]

    def lacks_workers(self) -> str:
        """Why nobody would begin an order; empty where somebody would."""
        if self.count("worker"):
            return ""
        unfit = self.count("unfit")
        if unfit:
            return f"{unfit} workers of the farm are alive, and none of them compiles a small graph"
        if self._unbelieved:
            return (
                f"the heartbeats of {self._unbelieved} workers cannot be verified: KILN_KEYS does not have their keys, "
                "or their clocks differ from the clock of this machine by more than five minutes"
            )
        return "no worker of the farm is alive"

    def width(self, most: int, ahead: float) -> int:
        """How many orders a service best hands out: its share of `ahead` for each that workers do at a time.

        What is handed out has its turn before everything that comes later, whosesoever it is: the rest is better off
        where tenants take turns. `most` at most, and where no worker signs.
        """
        workers = self._living("worker")
        if not workers:
            return most
        share = ahead * sum(each.places for each in workers) / max(1, self.count("service"))
        return min(most, _LEAST + math.ceil(share))

    def _role_and_name(self, path: str) -> tuple[str, str]:
        role, _, name = path.removeprefix(self._folder).partition(".")
        return role, name

    def _path(self, role: Role, name: str) -> str:
        return f"{self._folder}{role}.{name}"


def _about(role: str, name: str) -> dict[str, str]:
    return {"build": build().build_id, "role": role, "name": name}
