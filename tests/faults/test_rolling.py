"""Everything can be replaced under load: nobody who asks notices, and all that is stopped ends in order."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import httpx2
import pytest

from tests.farm.topology import Farm
from tests.faults.requests import accept, body, ended, post
from tests.faults.size import figures, sized

pytestmark = pytest.mark.xdist_group("farm")


class Load:
    """So many requests a second, by turns to each service; the next one when one does not answer, as a proxy does."""

    def __init__(self, farm: Farm, per_second: float) -> None:
        self._farm = farm
        self._pause = 1 / per_second
        self._over = threading.Event()
        self.statuses: list[int] = []
        self.moved = 0

    def run(self) -> None:
        with ThreadPoolExecutor(16) as pool:
            for number in count():
                if self._over.wait(self._pause):
                    return
                pool.submit(self._send, number)

    def stop(self) -> None:
        self._over.set()

    def _send(self, number: int) -> None:
        # Every tenth is one that has to be compiled.
        content = body(3000 + number, "sqrt") if number % 10 == 0 else body(number % 8, "sqrt")
        for place in (number, number + 1, number):
            try:
                answer = post(self._farm.urls[place % 2], content)
            except httpx2.TransportError:
                self.moved += 1
                time.sleep(0.05)
                continue
            if answer.status_code != 503:
                self.statuses.append(answer.status_code)
                return
            self.moved += 1
        self.statuses.append(0)


def test_a_rolling_restart_fails_no_request_and_loses_no_job(farm: Farm) -> None:
    for number in range(8):
        for url in farm.urls:
            assert post(url, body(number, "sqrt")).status_code == 200
    load = Load(farm, sized(10.0, 50.0))
    thread = threading.Thread(target=load.run)
    thread.start()
    jobs = [accept(farm.urls[number % 2], body(4000 + number, "sqrt")) for number in range(sized(10, 100))]
    statuses: list[int] = []
    # The workers first, as they have to know what a new service may ask for.
    members = [*farm.workers[: sized(1, None)], *farm.services]
    for member in members:
        statuses.append(member.stop())
        member.start()
        member.await_ready()
    load.stop()
    thread.join()
    found = [ended(farm.urls, each, 300)["state"] for each in jobs]
    failed = [status for status in load.statuses if status != 200]
    figures(
        "rolling restart",
        requests=len(load.statuses),
        failed=len(failed),
        moved_to_the_other_service=load.moved,
        jobs=f"{found.count('done')} of {len(jobs)}",
        exit_statuses=statuses,
    )
    assert failed == []
    assert set(found) == {"done"}
    assert statuses == [0] * len(members)
