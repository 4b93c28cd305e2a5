"""What a worker was at is begun again by another when it is killed or frozen, and so often and no more."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.settings import Settings
from tests.farm.topology import Farm
from tests.faults.requests import accept, answered, body, claimers, ended, slow_body
from tests.faults.size import FULL, figures

pytestmark = pytest.mark.xdist_group("farm")


def test_a_request_is_answered_though_its_worker_is_killed_in_the_middle(farm: Farm) -> None:
    before = time.time()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(answered, farm.urls[0], slow_body(1, 3000))
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
    if FULL:
        assert took < Settings().compile_deadline_s + 5


def test_poison_is_begun_twice_and_then_known(farm: Farm) -> None:
    def crashes() -> int:
        return sum(len(worker.lines("a compile failed")) for worker in farm.workers)

    before, begin = crashes(), time.monotonic()
    first = answered(farm.urls[0], body(7), "always:segfault").json()
    took = time.monotonic() - begin
    again = answered(farm.urls[1], body(7), "always:segfault").json()
    figures("poison", attempts=crashes() - before, seconds=took, remembered=again["details"].get("cached", False))
    assert (first["code"], first["details"]["attempts"], crashes() - before) == ("compile.crashed", 2, 2)
    assert again["details"]["cached"]
    if FULL:
        assert took < 2.0
    identifier = accept(farm.urls[0], body(8), "always:abort")
    found = ended(farm.urls, identifier)
    assert (found["state"], found["attempt"]) == ("failed", 2)
