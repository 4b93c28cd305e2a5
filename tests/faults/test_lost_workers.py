"""An accepted job ends, with the right program, whoever is killed or frozen meanwhile."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import httpx2
import numpy as np
import pytest

from service.engine.farm.reaper import LEASE_S
from tensorkiln import Client
from tensorkiln.graph import Graph
from tests.farm.topology import Farm
from tests.faults.conftest import require
from tests.faults.requests import HTTP, accept, body, claimers, ended, job, post, slow_body
from tests.faults.size import FULL, figures, sized
from tests.faults.storm import Storm
from tests.service.bodies import graph

pytestmark = pytest.mark.xdist_group("farm")


def _accept(farm: Farm, number: int) -> str:
    """The id of a job, by whichever service takes it."""
    while True:
        for url in (farm.urls[number % 2], farm.urls[1 - number % 2]):
            try:
                return accept(url, body(number, "log2"))
            except (httpx2.TransportError, AssertionError):
                time.sleep(0.1)


def test_every_accepted_job_is_done_under_a_storm_of_kills(farm: Farm, tmp_path: Path) -> None:
    count = sized(40, 1000)
    storm = Storm(farm, restarts=sized(1, 2))
    begin = time.monotonic()
    raging = threading.Thread(target=storm.rage, args=(sized(12.0, 240.0),))
    raging.start()
    with ThreadPoolExecutor(4) as pool:
        accepted = list(pool.map(lambda number: _accept(farm, number), range(count)))
        if not FULL:
            raging.join()
        found = list(pool.map(lambda each: ended(farm.urls, each, 900), accepted))
    storm.over.set()
    raging.join()
    took = time.monotonic() - begin
    for worker in farm.workers:
        worker.await_ready()
    done = [each for each in found if each["state"] == "done"]
    recoveries = storm.recoveries()
    figures(
        "storm",
        done=len(done),
        of=count,
        kills=storm.kills,
        freezes=storm.freezes,
        restarts_of_services=storm.restarts,
        orders_lost_and_made_again=len(recoveries),
        worst_recovery_s=max(recoveries, default=0.0),
        seconds=took,
    )
    assert len(done) == count, [each for each in found if each["state"] != "done"]
    for each in done:
        artifact = each["programs"][0]["kernels"][0]["artifact"]
        assert sha256(HTTP.get(f"{farm.urls[0]}/artifacts/{artifact}").content).hexdigest() == artifact
    with Client(farm.urls[0]) as client:
        for number in range(0, count, max(1, count // 5)):
            x = np.linspace(1, 2, (number + 1) * 8, dtype=np.float32).reshape(number + 1, 8)
            wire = graph("log2", rows=number + 1)
            result, _ = client.compile(Graph.model_validate(wire), target="cpu:x86-64-v3")(x, n=8)
            np.testing.assert_allclose(result, np.log2(x), rtol=1e-6, atol=1e-6)
    # Frozen or killed, an order is seen to be lost when its worker has been silent for a lease, in rounds of a second.
    assert max(recoveries, default=0.0) <= LEASE_S + 2 + (0 if FULL else 3)


def test_a_request_is_answered_though_its_worker_is_killed_in_the_middle(farm: Farm) -> None:
    before = time.time()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(post, farm.urls[0], slow_body(1, 3000))
        while not (names := claimers(farm, before)):
            time.sleep(0.01)
        time.sleep(0.2)
        place = int(names[0].partition(".")[0].removeprefix("worker-")) - 1
        begin = time.monotonic()
        farm.workers[place].kill()
        answer = waiting.result()
    took = time.monotonic() - begin
    farm.workers[place].start()
    farm.workers[place].await_ready()
    figures(
        "kill -9 in a compile", status=answer.status_code, attempts=answer.headers["Kiln-Attempts"], answered_s=took
    )
    assert (answer.status_code, answer.headers["Kiln-Attempts"]) == (200, "2")


def test_poison_is_begun_twice_and_then_known(farm: Farm) -> None:
    def crashes() -> int:
        return sum(len(worker.lines("a compile failed")) for worker in farm.workers)

    before, begin = crashes(), time.monotonic()
    first = post(farm.urls[0], body(7), "poison:segfault").json()
    took = time.monotonic() - begin
    again = post(farm.urls[1], body(7), "poison:segfault").json()
    figures("poison", attempts=crashes() - before, seconds=took, remembered=again["details"].get("cached", False))
    assert (first["code"], first["details"]["attempts"], crashes() - before) == ("compile.crashed", 2, 2)
    assert again["details"]["cached"]
    assert took < sized(10.0, 2.0)
    identifier = accept(farm.urls[0], body(8), "poison:abort")
    found = ended(farm.urls, identifier)
    assert (found["state"], found["attempt"]) == ("failed", 2)


def test_poison_that_both_services_meet_at_once_is_begun_twice_in_all(farm: Farm) -> None:
    def crashes() -> int:
        return sum(len(worker.lines("a compile failed")) for worker in farm.workers)

    trials = sized(3, 20)
    with ThreadPoolExecutor(len(farm.urls)) as pool:
        for number in range(trials):
            before, content = crashes(), body(900 + number)
            asked = [pool.submit(post, url, content, "poison:segfault") for url in farm.urls]
            problems = [each.result().json() for each in asked]
            assert [each["code"] for each in problems] == ["compile.crashed"] * len(farm.urls)
            assert [each["details"]["attempts"] for each in problems] == [2] * len(farm.urls)
            assert crashes() - before == 2
    figures("poison at two services at once", attempts=f"2 in {trials} of {trials}")


@pytest.mark.parametrize("kind", ["rabbit", "redis"])
def test_a_message_that_a_frozen_worker_took_is_not_lost(kind: str, tmp_path: Path) -> None:
    require(kind)
    trials = sized(1, 5)
    recoveries: list[float] = []
    with Farm(tmp_path, kind=kind, services=1, workers=2) as farm:
        warning = "Redis is a broker for development only"
        assert (warning in farm.services[0].log.read_text()) == (kind == "redis")
        assert post(farm.urls[0], body(20)).status_code == 200
        one, other = farm.workers
        other.stop()
        for trial in range(trials):
            one.signal(signal.SIGSTOP)
            identifier = accept(farm.urls[0], body(21 + trial))
            # Long enough for the order to be announced, and to reach the socket of the worker.
            time.sleep(1.0)
            assert job(farm.urls, identifier)["state"] in ("queued", "running")
            begin = time.monotonic()
            one.kill()
            other.start()
            other.await_ready()
            found = ended(farm.urls, identifier, 60)
            recoveries.append(time.monotonic() - begin)
            assert found["state"] == "done"
            one, other = other, one
    figures(f"a frozen worker on {kind}", recovered=f"{len(recoveries)} of {trials}", worst_s=max(recoveries))
