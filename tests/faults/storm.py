"""A storm over a farm: its workers are killed and frozen, its services killed, all at random and again and again."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.action import Action
from service.store.records import unsealed
from tests.farm.members import Member
from tests.farm.topology import Farm
from tests.faults.size import FULL, sized

EVERY_S = sized(4.0, 2.0)
"""At the small size there are half as many workers, which take as long to begin again."""
ROUND = sized(2, 4)
"""So many strikes, the second half by freezing, before a service is killed."""
_FROZEN_S = 1.0


@dataclass(frozen=True, slots=True)
class Strike:
    """A worker that was at an action when it was struck, at this time in seconds since the epoch."""

    at: float
    process: str
    action: str
    was_frozen: bool


@dataclass
class Storm:
    """`kills` and `freezes` are those of workers that were at something; `strikes` are those, `idle` the others."""

    farm: Farm
    restarts: int
    seed: int = 0
    idle: int = 0
    strikes: list[Strike] = field(default_factory=list[Strike])
    services_killed: list[float] = field(default_factory=list[float])
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def kills(self) -> int:
        """Workers that were killed in the middle of an order."""
        return sum(not each.was_frozen for each in self.strikes)

    @property
    def freezes(self) -> int:
        """Workers that were frozen in the middle of an order, and then killed."""
        return sum(each.was_frozen for each in self.strikes)

    def rage(self) -> None:
        """Strike a worker again and again until `over`; kill a service after every round of strikes, so many times."""
        chance = random.Random(self.seed)
        struck = 0
        while not self.over.wait(EVERY_S):
            every = range(len(self.farm.workers))
            # Half of the strikes of a long storm are at random. The others look for a worker that has something to
            # lose, and nothing that another has lost before: an order over which five are lost is given up, as it
            # should be.
            new = [place for place in every if (struck % 2 or not FULL) and self._has_new(place)]
            # The few of a short storm all meet one.
            while not FULL and not new and not self.over.wait(0.05):
                new = [place for place in every if self._has_new(place)]
            self._strike(chance.choice(new or every), freeze=struck % ROUND >= ROUND // 2)
            struck += 1
            if struck % ROUND == 0 and len(self.services_killed) < self.restarts:
                # What a service has lost and not seen when it is killed is noticed by none: of a short storm one is.
                while not FULL and self.strikes and not self.noticed() and not self.over.wait(0.2):
                    pass
                self._restart(self.farm.services[len(self.services_killed) % len(self.farm.services)])

    def _strike(self, place: int, *, freeze: bool) -> None:
        worker, now, processes = self.farm.workers[place], time.time(), self._processes(place)
        if freeze:
            worker.signal(signal.SIGSTOP)
            time.sleep(_FROZEN_S)
        worker.kill()
        # Read once it is dead: what it had begun and not ended then, it does not end any more.
        lost = self._lost(processes)
        self.strikes += [Strike(now, process, action, freeze) for process, action in lost]
        self.idle += not lost
        worker.start()

    def _restart(self, service: Member) -> None:
        self.services_killed.append(time.time())
        service.kill()
        service.start()
        service.await_ready()

    def _has_new(self, place: int) -> bool:
        known = {each.action for each in self.strikes}
        return any(action not in known for _, action in self._lost(self._processes(place)))

    def _processes(self, place: int) -> tuple[str, ...]:
        """How the name begins that a worker has now."""
        return (f"worker-{place + 1}.{self.farm.workers[place].pid}.",)

    def _lost(self, processes: tuple[str, ...]) -> list[tuple[str, str]]:
        """What they have begun and not ended, by what the store has: who, and the digest of the action."""
        found: list[tuple[str, str]] = []
        for claim in self.farm.store.glob("farm/*/claims/*"):
            owner, task = claim.parent.parent, claim.name
            begun, order = _record(claim), _record(owner / "open" / task)
            if begun and order and begun["worker"].startswith(processes) and not (owner / "done" / task).exists():
                found.append((begun["worker"], Action(**order["action"]).digest))
        return found

    def noticed(self) -> list[float]:
        """Seconds from a strike to when a service saw that its worker was lost, for each order that was lost."""
        struck = {each.process: each.at for each in self.strikes}
        lines = [line for service in self.farm.services for line in service.lines("a worker was lost")]
        return [line["at"] - struck[line["worker"]] for line in lines if line["worker"] in struck]

    def recoveries(self, ended: Mapping[str, float]) -> list[float]:
        """Seconds from a strike to the end of what was lost by it; `ended` has the ends, by the digest of the action.

        What was struck again, or met the end of a service as well, is counted from the last of it.
        """
        last = {each.action: each.at for each in self.strikes if each.action in ended}
        begun = {
            action: max([at, *(killed for killed in self.services_killed if killed < ended[action])])
            for action, at in last.items()
        }
        return [ended[action] - at for action, at in begun.items()]


def _record(path: Path) -> dict[str, Any] | None:
    """A record; None when it is gone by now."""
    try:
        return unsealed(path.read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
