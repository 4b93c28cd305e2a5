"""A storm over a farm: its workers are killed and frozen, its services killed, all at random and again and again."""

from __future__ import annotations

import random
import signal
import threading
import time
from dataclasses import dataclass, field

from tests.farm.members import Member
from tests.farm.topology import Farm
from tests.service.server import children

EVERY_S = 2.0
_FROZEN_S = 1.0


@dataclass
class Storm:
    """`hit` has when each process of a worker was struck, by the beginning of its name: seconds since the epoch."""

    farm: Farm
    restarts: int
    seed: int = 0
    kills: int = 0
    freezes: int = 0
    hit: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    over: threading.Event = field(default_factory=threading.Event)

    def rage(self, seconds: float) -> None:
        """Strike a worker every two seconds until `over`, or for so long; kill services in between."""
        chance = random.Random(self.seed)
        begin = time.monotonic()
        restart_at = [seconds * (number + 1) / (self.restarts + 1) for number in range(self.restarts)]
        restarted = 0
        while not self.over.wait(EVERY_S) and time.monotonic() - begin < seconds:
            place = chance.randrange(len(self.farm.workers))
            self._strike(f"worker-{place + 1}.", self.farm.workers[place], freeze=chance.random() < 0.5)
            if restarted < self.restarts and time.monotonic() - begin >= restart_at[restarted]:
                self._restart(self.farm.services[restarted % len(self.farm.services)])
                restarted += 1
        while restarted < self.restarts:
            self._restart(self.farm.services[restarted % len(self.farm.services)])
            restarted += 1

    def _strike(self, name: str, worker: Member, *, freeze: bool) -> None:
        now = time.time()
        self.hit += [(f"{name}{child}.", now) for child in children(worker.pid)]
        if freeze:
            worker.signal(signal.SIGSTOP)
            time.sleep(_FROZEN_S)
        self.freezes += freeze
        self.kills += not freeze
        worker.kill()
        worker.start()

    def _restart(self, service: Member) -> None:
        service.kill()
        service.start()
        service.await_ready()

    def recoveries(self) -> list[float]:
        """Seconds from a strike to when a service saw that its worker was lost, for each order that was lost."""
        found: list[float] = []
        for service in self.farm.services:
            for line in service.lines("a worker was lost"):
                found += [line["at"] - at for name, at in self.hit if line["worker"].startswith(name)]
        return found
