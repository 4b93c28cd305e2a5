"""An accepted job ends, with the right program, whoever is killed or frozen meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import numpy as np
import pytest

from service.store.claims import LEASE_S
from tensorkiln import Client
from tensorkiln.graph import Graph
from tests.farm.topology import Farm
from tests.faults.apart import made, made_apart
from tests.faults.chain import chain, chained
from tests.faults.requests import accept, ended
from tests.faults.size import FULL, figures, sized
from tests.faults.storm import Storm
from tests.service.bodies import compile_body, encoded

pytestmark = pytest.mark.xdist_group("farm")
JOBS = sized(8, 1000)
STRUCK = sized(1, 20)
"""At least so many workers are killed, and so many frozen, in the middle of an order."""
MOST_S = sized(120.0, 2400.0)


@dataclass
class Accepted:
    """Jobs that are accepted while others are worked on, as many at a time as there are workers.

    So a worker seldom waits, and an order that is announced again has not many before it: how long it takes to its end
    is how long the farm takes to make up for a worker.
    """

    farm: Farm
    go_on: Callable[[], bool]
    began: dict[int, float] = field(default_factory=dict[int, float])
    ended: dict[int, float] = field(default_factory=dict[int, float])
    found: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])

    def work(self) -> None:
        """Come back when there is no more to be accepted, and all has ended."""
        numbers = count()
        clients = [threading.Thread(target=self._send, args=(numbers,)) for _ in self.farm.workers]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def _send(self, numbers: count[int]) -> None:
        while self.go_on():
            number = next(numbers)
            identifier = self._accept(number)
            self.began[number] = time.time()
            self.found[number] = ended(self.farm.urls, identifier, MOST_S, every_s=0.2)
            self.ended[number] = time.time()

    def _accept(self, number: int) -> str:
        """The id of a job, by whichever service takes it."""
        while True:
            for url in (self.farm.urls[number % 2], self.farm.urls[1 - number % 2]):
                try:
                    return accept(url, content(number))
                except (httpx2.TransportError, AssertionError):
                    time.sleep(0.1)


def content(number: int) -> bytes:
    return encoded(compile_body(chain(rows=number + 1)))


def test_every_accepted_job_is_done_under_a_storm_of_kills(farm: Farm, tmp_path: Path) -> None:
    storm = Storm(farm, restarts=sized(1, 2))
    end = time.monotonic() + MOST_S

    def is_not_enough() -> bool:
        missing = len(accepted.began) < JOBS or min(storm.kills, storm.freezes) < STRUCK
        # A lost worker whose service is killed before it sees that is noticed by none.
        missing = missing or len(storm.services_killed) < storm.restarts or not storm.noticed()
        return missing and time.monotonic() < end

    accepted = Accepted(farm, is_not_enough)
    raging = threading.Thread(target=storm.rage)
    begin = time.monotonic()
    raging.start()
    accepted.work()
    storm.over.set()
    raging.join()
    took = time.monotonic() - begin
    for worker in farm.workers:
        worker.await_ready()
    done = {number: each for number, each in accepted.found.items() if each["state"] == "done"}
    actions = {each["programs"][0]["digest"]: accepted.ended[number] for number, each in done.items()}
    noticed, recoveries = storm.noticed(), storm.recoveries(actions)
    struck = {each.action for each in storm.strikes}
    untouched = [
        accepted.ended[number] - accepted.began[number]
        for number, each in done.items()
        if each["programs"][0]["digest"] not in struck
    ]
    figures(
        "storm",
        done=len(done),
        of=len(accepted.found),
        killed_at_work=storm.kills,
        frozen_at_work=storm.freezes,
        struck_while_idle=storm.idle,
        services_killed=len(storm.services_killed),
        orders_begun_again=len(noticed),
        worst_until_noticed_s=max(noticed),
        recovered=len(recoveries),
        worst_until_the_end_s=max(recoveries),
        median_until_the_end_s=median(recoveries),
        untouched_median_s=median(untouched),
        untouched_worst_s=max(untouched),
        seconds=took,
    )
    assert len(done) == len(accepted.found), [each for each in accepted.found.values() if each["state"] != "done"]
    assert len(done) >= JOBS
    assert min(storm.kills, storm.freezes) >= STRUCK
    assert len(storm.services_killed) == storm.restarts
    # A worker is seen to be lost when it has been silent for a lease, in rounds of a second; that is all that a job
    # loses by it, over what one takes that loses nothing. At the small size other tests take their part of the machine.
    at_most = LEASE_S + 2 + (0 if FULL else 15)
    assert max(noticed) <= at_most
    assert max(recoveries) <= at_most + max(untouched)
    sample = sorted(done)[:: max(1, len(done) // sized(20, 200))]
    with Client(farm.urls[0]) as client:
        for number in sample:
            x = np.linspace(1, 2, number + 1, dtype=np.float32)
            program = client.compile(Graph.model_validate(chain(rows=number + 1)), target="cpu:x86-64-v3")
            assert program.compiled.digest == done[number]["programs"][0]["digest"]
            np.testing.assert_allclose(program(x)[0], chained(x), rtol=1e-5)
    # Those that were struck among them: begun twice, they come to the bytes of one that was begun once.
    again = [number for number, each in done.items() if each["programs"][0]["digest"] in struck][: sized(6, 50)]
    assert [made(done[number]) for number in again] == made_apart(tmp_path / "apart", [content(each) for each in again])
