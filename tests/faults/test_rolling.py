"""Everything can be replaced under load: nobody who asks notices, and all that is stopped ends in order."""

from __future__ import annotations

import time

import pytest

from tests.farm.topology import Farm
from tests.faults.arrivals import STORED, Arrivals
from tests.faults.balancer import Balancer
from tests.faults.conftest import NOTICE_S
from tests.faults.requests import accept, answered, body, ended
from tests.faults.size import figures, sized

pytestmark = pytest.mark.xdist_group("farm")
PER_SECOND = sized(20.0, 50.0)


def test_a_rolling_restart_fails_no_request_and_loses_no_job(farm: Farm) -> None:
    for number in range(STORED):
        for url in farm.urls:
            assert answered(url, body(number, "sqrt")).status_code == 200
    jobs = [accept(farm.urls[number % 2], body(2000 + number, "sqrt")) for number in range(sized(10, 100))]
    exits: list[int] = []
    noticed: list[float] = []
    served_while_red: list[int] = []
    with Balancer(farm.urls) as balancer:
        for url in farm.urls:
            balancer.await_ready(url)
        arrivals = Arrivals(balancer, PER_SECOND)
        with arrivals.coming():
            # The workers first, as they have to know what a new service may ask for.
            for worker in farm.workers[: sized(1, None)]:
                exits.append(worker.stop())
                worker.start()
                worker.await_ready()
            for url, service in zip(farm.urls, farm.services, strict=True):
                begin = time.monotonic()
                exits.append(service.stop())
                out = max(balancer.taken_out[url], default=0.0)
                assert out > begin, "it was gone before a balancer could know"
                noticed.append(out - begin)
                served_while_red.append(sum(begin < each.at < out and each.url == url for each in arrivals.sent))
                service.start()
                service.await_ready()
                balancer.await_ready(url)
    found = [ended(farm.urls, each, 300)["state"] for each in (*jobs, *arrivals.jobs)]
    figures(
        "rolling restart",
        requests=len(arrivals.sent),
        in_a_second=arrivals.rate(),
        failed=len(arrivals.failed()),
        statuses=dict(arrivals.statuses()),
        services_taken_out_after_s=[round(each, 2) for each in noticed],
        sent_to_them_after_their_signal=served_while_red,
        jobs=f"{found.count('done')} of {len(found)}",
        accepted_meanwhile=len(arrivals.jobs),
        exit_statuses=exits,
    )
    # Each request was sent once: a connection that broke and a refusal are failures, whoever would have tried again.
    assert not arrivals.failed()
    assert arrivals.rate() > sized(0.7, 0.95) * PER_SECOND
    assert min(served_while_red) > 0, "readiness turns first, and whoever has not heard of it is served"
    assert max(noticed) < NOTICE_S
    assert arrivals.jobs
    assert set(found) == {"done"}
    assert exits == [0] * len(exits)
