"""The members of a farm, as the store has them: workers, and services that have orders.

Each rewrites a file of its own as its heartbeat. Of a service's file, only the time of writing counts. A worker signs
its heartbeats with its key, for its name; each is numbered, so that an old one that is written again does not count.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final, Literal, TypeAlias

from service import clock
from service.store.claims import Leases
from service.store.evict import MEMBERS_FOLDER
from service.store.inventory import items
from service.store.location import ObjectStore
from service.store.records import Records
from service.trust.notary import Notary
from tensorkiln.trust.verify import CLOCK_SKEW_S

from .ledger import generation

Role: TypeAlias = Literal["worker", "unfit", "service"]
"""`worker` is a worker that compiles, `unfit` a worker whose canary fails, `service` a service with orders."""

_LEAST: Final = 2
"""Orders that a service hands out beyond its share, so that each of many services has some."""


class Roster:
    """The members with the same build of the compiler as this process: others get no orders from here."""

    def __init__(self, store: ObjectStore, records: Records, notary: Notary) -> None:
        self._store = store
        self._records = records
        self._notary = notary
        self._folder = f"{MEMBERS_FOLDER}{generation()}/"
        self._written: dict[str, float] = {}
        self._leases = Leases()
        # The role of each, and how many orders a worker does at a time.
        self._members: dict[str, tuple[Role, int]] = {}
        self._unbelieved: set[str] = set()
        self._made = 0

    async def register(self, role: Role, name: str, places: int = 0) -> None:
        """Write a heartbeat of `name` as `role`; `places` is how many orders a worker does at a time."""
        self._made += 1
        path = self._path(role, name)
        content = {"number": self._made, "role": role, "places": places}
        if role != "service":
            content = self._notary.sealed("member", path, content)
        await self._records.put(path, content)

    async def deregister(self, role: Role, name: str) -> None:
        await self._records.delete(self._path(role, name))

    async def refresh(self) -> None:
        """Read the heartbeats that have changed."""
        listed = {item.path: item.used async for item in items(self._store, self._folder)}
        changed = [path for path, written in listed.items() if self._written.get(path) != written]
        await asyncio.gather(*(self._refresh(path, listed[path]) for path in changed))
        self._written = listed
        self._members = {path: member for path, member in self._members.items() if path in listed}
        self._unbelieved &= listed.keys()

    async def _refresh(self, path: str, written: float) -> None:
        if path.startswith(self._path("service", "")):
            # `refresh` found another time of writing. It may be earlier: the clock of the store may have gone back.
            self._leases.renew(path)
            self._members[path] = "service", 0
            return
        record = await self._records.get(path)
        if path not in self._written and record is not None:
            left = self._notary.unsealed("member", path, record, written)
            # An old file is a leftover at first sight. If it is rewritten, its worker is alive with a wrong clock.
            if isinstance(left, dict) and clock.time() - left["at"] > CLOCK_SKEW_S:
                return
        stated = self._notary.opened("member", path, record)
        if stated is None:
            if path not in self._members:
                self._unbelieved.add(path)
        elif self._leases.heartbeat(path, stated["number"]):
            self._members[path] = stated["role"], stated["places"]
            self._unbelieved.discard(path)

    def count(self, role: Role) -> int:
        """How many members with this role have a lease, by the heartbeats that were read last."""
        return len(self._places(role))

    def _places(self, role: Role) -> list[int]:
        return [
            places for path, (found, places) in self._members.items() if found == role and self._leases.is_alive(path)
        ]

    def lacks_workers(self) -> str:
        """Why no worker would start an order; empty if one would."""
        if self.count("worker"):
            return ""
        unfit = self.count("unfit")
        if unfit:
            return f"{unfit} workers of the farm are alive, and none of them compiles a small graph"
        if self._unbelieved:
            return (
                f"the heartbeats of {len(self._unbelieved)} workers cannot be verified: KILN_KEYS does not have their "
                "keys, or their clocks differ from the clock of this machine by more than five minutes"
            )
        return "no worker of the farm is alive"

    def width(self, most: int, ahead: float) -> int:
        """How many orders this service should hand out: its share of `ahead` for each place of the workers.

        At most `most`, which is also the answer without a worker.
        """
        places = self._places("worker")
        if not places:
            return most
        return min(most, _LEAST + math.ceil(ahead * sum(places) / max(1, self.count("service"))))

    def _path(self, role: Role, name: str) -> str:
        """The path of a member. A worker has one file in both roles, so that it never counts in both."""
        return f"{self._folder}{'service' if role == 'service' else 'worker'}.{name}"
