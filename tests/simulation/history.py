"""One history of a farm, determined by its seed: members, requests, and faults with their times."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import count
from random import Random
from typing import Final

from service.store.claims import LEASE_S
from tensorkiln.errors import UnavailableError

from .compiler import Compiler, Kind, graph
from .loop import SimulatedLoop
from .members import REQUIRED, Service, Worker, action
from .process import Process
from .promises import Promises
from .store import Contents

BUILDS: Final = ("a" * 64, "b" * 64)
_WEAK: Final = "process"
_MOST_SKEW_S: Final = 100.0
_SOMETIMES: Final = 0.15
_ASKS_S: Final = 2.0
_STRIKES_S: Final = 5.0
"""Faults start within this time, requests within `_ASKS_S`."""
_AT_ONCE_S: Final = 0.1
_PATIENCE_S: Final = 150.0
"""A job counts as lost if it has not ended this long after the last fault."""
_RESTART_S: Final = 3.0
_LOOK_S: Final = 0.5
_END_S: Final = 10.0
"""Time for killed tasks to unwind."""


@dataclass(frozen=True)
class Place:
    """A slot for a member, which is restarted when it ends. `level` is a worker's isolation, empty for a service."""

    name: str
    level: str
    build: str
    skew_s: float


class History:
    """The history of a seed. Call `run` once; `told` is the log of events with their times."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._promises = Promises()
        self._contents = Contents(self._written)
        self._running: dict[Place, Service | Worker] = {}
        self.told: list[str] = []

    def run(self) -> None:
        """Run the history. Raises Broken if a promise was broken."""
        loop = SimulatedLoop()
        loop.set_exception_handler(lambda *_: None)
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._run())
        finally:
            asyncio.set_event_loop(None)
            loop.close()
        self._promises.check(self._contents.objects)

    async def _run(self) -> None:
        chance = self._chance
        places = self._places()
        keeping = [asyncio.create_task(self._keep(place)) for place in places]
        acts = [self._ask(number) for number in range(chance.randint(1, 3))]
        acts += [self._strike(chance.choice(places)) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
        acting = asyncio.gather(*acts)
        done, _ = await asyncio.wait({acting, *keeping}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        until = asyncio.get_running_loop().time() + _PATIENCE_S
        while not self._promises.are_decided and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(_LOOK_S)
        for task in keeping:
            task.cancel()
        for member in self._running.values():
            member.process.kill()
        await asyncio.sleep(_END_S)

    def _places(self) -> list[Place]:
        chance = self._chance

        def place(name: str, level: str, build: str = BUILDS[0]) -> Place:
            return Place(name, level, build, chance.choice((0.0, 0.0, chance.uniform(-_MOST_SKEW_S, _MOST_SKEW_S))))

        places = [place(f"service {number}", "") for number in range(chance.randint(1, 2))]
        places += [place(f"worker {number}", REQUIRED) for number in range(chance.randint(1, 2))]
        if chance.random() < _SOMETIMES:
            self._promises.may_fail.add("artifact.untrusted")
            places.append(place("weak worker", _WEAK))
        if chance.random() < _SOMETIMES:
            places.append(place("worker of another build", REQUIRED, BUILDS[1]))
        return places

    async def _keep(self, place: Place) -> None:
        """Run a member at a place, and restart it whenever it ends."""
        for number in count(1):
            process = Process(f"{place.name}.{number}", place.build, Random(self._chance.random()), place.skew_s)
            member = process.makes(partial(self._member, place, process))
            self._running[place] = member
            process.run(_started(member))
            await process.ended.wait()
            await asyncio.sleep(self._chance.random() * _RESTART_S)

    def _member(self, place: Place, process: Process) -> Service | Worker:
        if not place.level:
            return Service(process, self._contents)
        return Worker(process, self._contents, Compiler(process, place.level, self._promises.compiled))

    async def _ask(self, number: int) -> None:
        """Request a job from a random running service."""
        chance = self._chance
        kind: Kind = chance.choices(("good", "refused", "poison", "deadly"), (40, 2, 6, 2))[0]
        asked, job = graph(kind, chance.randint(1, 2)), f"{number:032x}"
        await asyncio.sleep(chance.random() * _ASKS_S)
        service = chance.choice([each for each in self._running.values() if isinstance(each, Service)])
        accepting = service.process.run(service.accept(job, asked))
        await asyncio.wait({accepting})
        if accepting.cancelled() or isinstance(accepting.exception(), UnavailableError):
            self._tell(f"{service.process.name} did not accept the job {number}")
            return
        accepting.result()
        self._promises.accepted[job] = kind, action(sha256(asked).hexdigest(), BUILDS[0]).digest
        self._tell(f"{service.process.name} accepted the job {number} on a {kind} graph")
        if chance.random() < _SOMETIMES:  # an accepted job must survive its service
            await asyncio.sleep(chance.random() * _AT_ONCE_S)
            service.process.kill()
            self._tell(f"{service.process.name} is killed")

    async def _strike(self, place: Place) -> None:
        chance = self._chance
        await asyncio.sleep(chance.random() * _STRIKES_S)
        process, for_s = self._running[place].process, chance.choice((1.0, 4.0, LEASE_S + 1, 3 * LEASE_S))
        what = chance.choice(("is killed", "is frozen", "is frozen and killed", "is cut off", "is slow", "is stopped"))
        self._tell(f"{process.name} {what}, {for_s} s")
        if place.level:  # a fault may keep the worker from reporting a crash
            self._promises.may_crash_more += 1
        if what == "is stopped":
            await asyncio.wait({process.run(self._running[place].stop())}, timeout=for_s)
        elif what.startswith("is frozen"):
            process.freeze()
        process.is_cut_off |= what == "is cut off"
        process.is_slow |= what == "is slow"
        if what != "is killed":
            await asyncio.sleep(for_s)
        if what in ("is killed", "is frozen and killed", "is stopped"):
            process.kill()
        process.thaw()
        process.is_cut_off = process.is_slow = False

    def _written(self, who: str, path: str, content: bytes) -> None:
        self._tell(f"{who} writes {path}")
        self._promises.written(path, content)

    def _tell(self, what: str) -> None:
        self.told.append(f"{asyncio.get_running_loop().time():8.3f} {what}")


async def _started(member: Service | Worker) -> None:
    while True:
        with suppress(UnavailableError):
            return await member.start()
        await asyncio.sleep(_RESTART_S)
