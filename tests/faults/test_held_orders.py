"""What signals leave to a worker: at SIGTERM an order that is begun comes to its end, at SIGQUIT it is given back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.farm.topology import Farm
from tests.faults.requests import accept, begun, body, ended

pytestmark = pytest.mark.xdist_group("farm")


def test_sigterm_lets_a_worker_finish_what_it_has_begun(tmp_path: Path) -> None:
    with Farm(tmp_path, services=1, workers=1, compile_deadline_s=10, fails=True) as farm:
        held = begun(farm, body(1), "hang")
        waiting = accept(farm.urls[0], body(2))
        os.kill(farm.workers[0].pid, signal.SIGTERM)
        assert farm.workers[0].stop() == 0
        found = ended(farm.urls, held)
        assert (found["state"], found["error"]["code"]) == ("failed", "compile.deadline_exceeded")
        farm.workers[0].start()
        farm.workers[0].await_ready()
        assert ended(farm.urls, waiting)["state"] == "done"
        assert farm.services[0].lines("a worker was lost") == []


def test_sigquit_has_a_worker_give_back_what_it_has_begun(tmp_path: Path) -> None:
    with Farm(tmp_path, services=1, workers=1, compile_deadline_s=8, fails=True) as farm:
        held = begun(farm, body(1), "hang")
        os.kill(farm.workers[0].pid, signal.SIGQUIT)
        assert farm.workers[0].stop() == 0
        farm.workers[0].start()
        farm.workers[0].await_ready()
        found = ended(farm.urls, held)
        assert farm.services[0].lines("a worker was lost") == [], "nobody had to wait for the end of a lease"
    assert (found["state"], found["error"]["code"]) == ("failed", "compile.deadline_exceeded")
    assert next(line["outcome"] for line in farm.workers[0].lines("an order ended")) == "given back"
