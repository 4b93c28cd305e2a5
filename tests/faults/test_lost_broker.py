"""A broker that dies takes nothing with it: what is stored is served, the rest is refused at once, jobs wait."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.farm.topology import Farm
from tests.faults.apart import are_served, made, made_apart
from tests.faults.requests import HTTP, accept, answered, body, claimers, ended, post, slow_body
from tests.faults.size import figures, sized

pytestmark = pytest.mark.xdist_group("farm")


def runs(farm: Farm) -> Counter[str]:
    """How often each action was compiled to its end, by the logs of the workers."""
    lines = [line for worker in farm.workers for line in worker.lines("an order is over")]
    return Counter(line["digest"] for line in lines if line["outcome"] == "done")


def test_a_broker_that_is_killed_loses_nothing(farm: Farm, tmp_path: Path) -> None:
    running, queued = len(farm.workers), sized(24, 500)
    slow = [slow_body(number, sized(4000, 6000)) for number in range(2, 2 + running)]
    quick = [body(100 + number, "sin") for number in range(queued)]
    stored = body(9)
    assert answered(farm.urls[0], stored).status_code == 200
    before, begin = runs(farm), time.time()
    jobs = [accept(farm.urls[0], content) for content in slow]
    while len(claimers(farm, begin)) < running:
        time.sleep(0.05)
    with ThreadPoolExecutor(4) as pool:
        jobs += pool.map(lambda number: accept(farm.urls[number % 2], quick[number]), range(queued))
    farm.broker.kill()
    # Of a file that is being written the name has a # in it.
    left = sum("#" not in path.name for path in (farm.store / "jobs" / "open").iterdir())
    try:
        refusals: list[float] = []
        for number in range(5):
            begin = time.monotonic()
            refused = post(farm.urls[number % 2], body(5000 + number))
            refusals.append(time.monotonic() - begin)
            assert (refused.status_code, refused.json()["code"]) == (503, "infra.unavailable"), refused.text
            assert refused.headers["Content-Type"] == "application/problem+json"
            assert int(refused.headers["Retry-After"]) >= 1
            assert post(farm.urls[number % 2], stored).status_code == 200
        assert post(farm.urls[0], body(5000), Prefer="respond-async").status_code == 503
        begin = time.monotonic()
        while HTTP.get(f"{farm.urls[0]}/readyz").status_code == 200 and time.monotonic() - begin < 60:
            time.sleep(0.2)
        noticed = time.monotonic() - begin
    finally:
        farm.broker.start()
    begin = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: ended(farm.urls, each, 900), jobs))
    took = time.monotonic() - begin
    done = [each for each in found if each["state"] == "done"]
    twice = sum(count - 1 for count in (runs(farm) - before).values() if count > 1)
    figures(
        "broker killed",
        done=len(done),
        of=len(jobs),
        compiled_twice=twice,
        worst_refusal_s=max(refusals),
        not_ready_after_s=noticed,
        seconds_after_its_return=took,
    )
    assert len(done) == len(jobs), [each for each in found if each["state"] != "done"]
    assert twice <= running
    assert max(refusals) < sized(15.0, 1.0)
    assert noticed < sized(30.0, 15.0)
    assert left == len(jobs), "none had ended when the broker went"
    # Some of what was waiting, and one that a worker was at.
    places = [0, *range(running, len(jobs), sized(1, 5))]
    programs = [made(found[place]) for place in places]
    artifacts = [artifact for each in programs for artifact in each.artifacts]
    assert programs == made_apart(tmp_path / "apart", [[*slow, *quick][place] for place in places])
    assert are_served(farm.urls[1], artifacts)
    assert len(set(artifacts)) >= len(places), "each has code of its own"
    print(f"{len(places)} of {len(places)} programs have the same bytes from a service apart")
