"""Who takes part in a farm, as the store has it: workers, and services that have orders.

Each writes a file of its own again and again. Of a service it is seen only whether it has been written since. What a
worker writes is signed with its key, for its name, and counts once: what is put there again is no sign of life.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final, Literal, TypeAlias

from service.lease import Leases
from service.store.inventory import items
from service.store.leftovers import MEMBERS_FOLDER
from service.store.location import ObjectStore
from service.store.records import Records
from tensorkiln.compiler_build import build

from .statements import Statements, generation

Role: TypeAlias = Literal["worker", "unfit", "service"]
"""`worker` is one that compiles, `unfit` one whose canary fails, `service` a service that has orders."""

_LEAST: Final = 2
"""Orders that are given beyond the share, so that the last of many services has some."""


class Roster:
    """The members with the same build of the compiler as this process: others get no orders from here.

    Workers sign with `statements`, and are believed by it.
    """

    def __init__(self, store: ObjectStore, records: Records, statements: Statements) -> None:
        self._store = store
        self._records = records
        self._statements = statements
        self._folder = f"{MEMBERS_FOLDER}{generation()}/"
        self._written: dict[str, float] = {}
        self._leases = Leases()
        # The role of each, and how many orders a worker does at a time.
        self._members: dict[str, tuple[Role, int]] = {}
        self._unbelieved: set[str] = set()
        self._made = 0

    async def register(self, role: Role, name: str, places: int = 0) -> None:
        """Say that `name` lives as `role`, a worker that does so many orders at a time."""
        self._made += 1
        path = self._path(role, name)
        content = {"number": self._made, "role": role, "places": places}
        if role != "service":
            content = self._statements.signed("member", _about(path), content)
        await self._records.put(path, content)

    async def deregister(self, role: Role, name: str) -> None:
        """`name` takes part no more."""
        await self._records.delete(self._path(role, name))

    async def refresh(self) -> None:
        """See who has signed."""
        listed = {item.path: item.used async for item in items(self._store, self._folder)}
        changed = [path for path, written in listed.items() if self._written.get(path) != written]
        await asyncio.gather(*(self._refresh(path, listed[path]) for path in changed))
        self._written = listed
        self._members = {path: member for path, member in self._members.items() if path in listed}
        self._unbelieved &= listed.keys()

    async def _refresh(self, path: str, written: float) -> None:
        if path.startswith(self._path("service", "")):
            # `refresh` has told a new time from the last one, though the clock of the store may have gone back.
            self._leases.renew(path)
            self._members[path] = "service", 0
            return
        record, about = await self._records.get(path), _about(path)
        # A file that is written again while this looks is of somebody who lives, and whose clock may be wrong.
        if path not in self._written and self._statements.has_lived("member", about, record, written):
            return
        stated = self._statements.believed("member", about, path, record)
        if stated is None:
            if path not in self._members:
                self._unbelieved.add(path)
        elif self._leases.heartbeat(path, stated["number"]):
            self._members[path] = stated["role"], stated["places"]
            self._unbelieved.discard(path)

    def count(self, role: Role) -> int:
        """How many have signed as `role` within a lease, as it was last seen."""
        return len(self._places(role))

    def _places(self, role: Role) -> list[int]:
        return [
            places for path, (found, places) in self._members.items() if found == role and self._leases.is_alive(path)
        ]

    def lacks_workers(self) -> str:
        """Why nobody would begin an order; empty where somebody would."""
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
        """How many orders a service best hands out: its share of `ahead` for each that workers do at a time.

        What is handed out has its turn before everything that comes later, whosesoever it is: the rest is better off
        where tenants take turns. `most` at most, and where no worker signs.
        """
        places = self._places("worker")
        if not places:
            return most
        return min(most, _LEAST + math.ceil(ahead * sum(places) / max(1, self.count("service"))))

    def _path(self, role: Role, name: str) -> str:
        """One that is unfit is a worker still, in the same file: what it signed as another is no sign beside it."""
        return f"{self._folder}{'service' if role == 'service' else 'worker'}.{name}"


def _about(path: str) -> dict[str, str]:
    return {"build": build().build_id, "member": path}
