"""A worker that gets no orders is not ready, however well it compiles, and gets them again when its broker is back.

One worker has no other to do its work.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest
from pydantic import SecretStr

from service.engine.farm.app import farm_app
from service.engine.farm.message import queue_name
from service.settings import Settings
from tests.farm.ports import free_port
from tests.farm.topology import Farm
from tests.faults.conftest import require_broker
from tests.faults.requests import HTTP, accept, begun, body, ended
from tests.observe.readiness import await_green, failed

pytestmark = pytest.mark.xdist_group("farm")
QUEUED = 3


@pytest.fixture(scope="module")
def figures() -> str:
    """Where the worker tells how it is."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, figures: str) -> Iterator[Farm]:
    """A broker, a service and a worker."""
    require_broker()
    home, settings = tmp_path_factory.mktemp("alone"), {"test_hooks": 1, "compile_deadline_s": 10}
    with Farm(home, services=1, workers=1, worker_metrics=figures, **settings) as running:
        yield running


def await_status(figures: str, status: int) -> str:
    """What the worker says of itself once it is ready (200), or is not (503); never is for the time-out of the test."""
    while (answer := HTTP.get(f"http://{figures}/readyz")).status_code != status:
        time.sleep(0.05)
    return answer.text


def waiting(farm: Farm) -> int:
    """How many messages are in the queue."""
    with farm_app(Settings(broker=SecretStr(farm.broker.url))).connection_for_read() as connection:
        return connection.channel().queue_declare(queue_name(), passive=True).message_count


def test_a_worker_without_its_broker_is_not_ready_and_does_what_was_accepted_when_it_is_back(
    alone: Farm, figures: str
) -> None:
    await_status(figures, 200)
    held = begun(alone, body(0), "hang")
    queued = [accept(alone.urls[0], body(1 + number)) for number in range(QUEUED)]
    while waiting(alone) < QUEUED:  # a worker that is at an order holds no other
        time.sleep(0.02)
    alone.broker.kill()
    assert "gets orders" in await_status(figures, 503)
    alone.broker.start()
    await_status(figures, 200)
    found = ended(alone.urls, held)
    assert (found["state"], found["error"]["code"]) == ("failed", "compile.deadline_exceeded")
    assert [ended(alone.urls, each)["state"] for each in queued] == ["done"] * QUEUED


def test_a_worker_whose_main_process_stands_still_is_none(alone: Farm, figures: str) -> None:
    await_status(figures, 200)
    await_green(alone.urls[0])
    with stopped(alone.workers[0].pid):
        await_status(figures, 503)
        while "canary" not in (reasons := failed(alone.urls[0])):
            time.sleep(0.1)
        assert "gets orders" in reasons["canary"]
    await_status(figures, 200)
    assert ended(alone.urls, accept(alone.urls[0], body(10)))["state"] == "done"


@contextmanager
def stopped(pid: int) -> Generator[None]:
    """A process stands still, and those that it forked do not."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
