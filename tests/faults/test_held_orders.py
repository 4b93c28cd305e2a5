"""What RabbitMQ grants a worker, and what signals leave to it: at SIGTERM an order that is begun comes to its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.engine.farm.message import queue_name
from service.settings import Settings
from tests.farm.members import Member
from tests.farm.rabbit import Rabbit
from tests.farm.topology import Farm
from tests.faults.conftest import require_broker
from tests.faults.requests import accept, begun, body, ended

pytestmark = pytest.mark.xdist_group("farm")


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbit]:
    """A RabbitMQ that workers come to and go from."""
    require_broker()
    running = Rabbit(tmp_path_factory.mktemp("rabbit"))
    try:
        running.start()
        yield running
    finally:
        running.close()


@pytest.mark.parametrize("deadline_s", [60, 3600])
def test_rabbitmq_is_told_that_an_order_may_be_held_for_as_long_as_a_worker_takes(
    rabbit: Rabbit, tmp_path: Path, deadline_s: int
) -> None:
    variables = {"KILN_BROKER": rabbit.url, "KILN_CONCURRENCY": "1", "KILN_COMPILE_DEADLINE_S": str(deadline_s)}
    worker = Member("service.worker", [], {"KILN_HOME": str(tmp_path), **variables}, tmp_path / "log")
    worker.start()
    try:
        worker.await_ready()
        (consumer,) = rabbit.told("list_consumers", "queue_name", "arguments")
    finally:
        worker.kill()
    assert consumer["queue_name"] == queue_name()
    arguments = {name: value for name, _, value in consumer["arguments"]}
    assert arguments["x-consumer-timeout"] > 1000 * Settings(compile_deadline_s=deadline_s).timeouts.worker_s


def test_sigterm_lets_a_worker_finish_what_it_has_begun(tmp_path: Path) -> None:
    require_broker()
    with Farm(tmp_path, services=1, workers=1, compile_deadline_s=10, test_hooks=1) as farm:
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
    require_broker()
    with Farm(tmp_path, services=1, workers=1, compile_deadline_s=8, test_hooks=1) as farm:
        held = begun(farm, body(1), "hang")
        os.kill(farm.workers[0].pid, signal.SIGQUIT)
        assert farm.workers[0].stop() == 0
        farm.workers[0].start()
        farm.workers[0].await_ready()
        found = ended(farm.urls, held)
    assert (found["state"], found["error"]["code"]) == ("failed", "compile.deadline_exceeded")
    assert found["attempt"] == 2
