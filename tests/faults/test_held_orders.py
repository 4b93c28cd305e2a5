"""What signals leave to a worker: at SIGTERM an order that is begun comes to its end, at SIGQUIT it is given back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.farm.topology import Farm
from tests.faults.requests import accept, begun, body, ended

pytestmark = pytest.mark.xdist_group("farm")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """One service and one worker, whose compiles have little time."""
    with Farm(tmp_path_factory.mktemp("small"), services=1, workers=1, compile_deadline_s=5, fails=True) as running:
        yield running


@pytest.mark.parametrize(
    ("number", "signal_", "outcome"),
    [(1, signal.SIGTERM, "compile.deadline_exceeded"), (3, signal.SIGQUIT, "given back")],
)
def test_a_worker_ends_or_gives_back_what_it_has_begun(
    small: Farm, number: int, signal_: signal.Signals, outcome: str
) -> None:
    (worker,), before = small.workers, len(small.workers[0].lines("an order ended"))
    held, waiting = begun(small, body(number), "hang"), accept(small.urls[0], body(number + 1))
    os.kill(worker.pid, signal_)
    assert worker.stop() == 0
    assert worker.lines("an order ended")[before]["outcome"] == outcome
    worker.start()
    worker.await_ready()
    found = ended(small.urls, held)
    assert (found["state"], found["error"]["code"]) == ("failed", "compile.deadline_exceeded")
    assert ended(small.urls, waiting)["state"] == "done"
    assert small.services[0].lines("a worker was lost") == [], "nobody had to wait for the end of a lease"
