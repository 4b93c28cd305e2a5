"""Which worker RabbitMQ gives an order to, and what becomes of an order whose message it delivers too often."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from kombu.message import Message as Delivered
from pydantic import SecretStr

from service.engine.farm.app import farm_app
from service.engine.farm.message import queue_name
from service.settings import Settings
from tests.farm.rabbit import Rabbit
from tests.farm.topology import Farm
from tests.faults.requests import HTTP, accept, body, claimers, ended, job
from tests.service.server import children

pytestmark = pytest.mark.xdist_group("farm")
DEAD = "kiln.dead"
SOON_S = 60.0


@contextmanager
def busy(farm: Farm, workers: int) -> Generator[list[str]]:
    """So many workers are at an order for as long as the block lasts; the names of their processes."""
    begin = time.time()
    hanging = [accept(farm.urls[0], body(7000 + number), "hang") for number in range(workers)]
    while len(names := claimers(farm, begin)) < workers:
        time.sleep(0.02)
    try:
        yield names
        assert [job(farm.urls, each)["state"] for each in hanging] == ["running"] * workers
    finally:
        for each in hanging:
            HTTP.delete(f"{farm.urls[0]}/jobs/{each}")


def claims_of(farm: Farm, worker: str) -> list[Path]:
    """The files by which a process of a worker says what it has begun; others may be deleted meanwhile."""
    found: list[Path] = []
    for path in farm.store.glob("farm/*/claims/*"):
        with suppress(FileNotFoundError):
            found += [path] if worker in path.read_text() else []
    return found


@contextmanager
def channel(farm: Farm) -> Generator[Any]:
    """Of a connection of its own: what came over it and is not acknowledged goes back to the queue at the end."""
    app = farm_app(Settings(broker=SecretStr(farm.broker.url)))
    with app.connection_for_read() as connection, connection.channel() as opened:
        yield opened


def take(opened: Any, *queues: str) -> tuple[str, Delivered]:
    """The first message of whichever of these queues has one soon."""
    end = time.monotonic() + SOON_S
    while time.monotonic() < end:
        for queue in queues:
            if (message := opened.basic_get(queue)) is not None:
                return queue, opened.message_to_python(message)
        time.sleep(0.02)
    raise TimeoutError(f"nothing in {queues}")


def is_for_now(message: Delivered) -> bool:
    """Whether a worker begins it as soon as it has it: a message that is to wait is delivered again meanwhile."""
    return all(not message.headers[name] for name in ("eta", "expires")) and not any(message.headers["timelimit"])


def test_an_order_goes_to_the_idle_worker_while_the_others_are_at_long_ones(farm: Farm) -> None:
    assert isinstance(farm.broker, Rabbit)
    consumers = farm.broker.told("list_consumers", "queue_name", "prefetch_count", "ack_required")
    of_workers = {"queue_name": queue_name(), "prefetch_count": 1, "ack_required": True}
    assert consumers == [of_workers] * len(farm.workers), "one with an order that is acknowledged late has no other"
    with busy(farm, len(farm.workers) - 1) as names:
        at_work = {name.partition(".")[0] for name in names}
        for number in range(len(farm.workers)):
            found = ended(farm.urls, accept(farm.urls[0], body(7100 + number)), SOON_S)
            assert found["state"] == "done", found
            assert found["signatures"][0]["record"]["worker"] not in at_work


def test_an_order_whose_message_is_delivered_too_often_is_sent_anew_and_done(farm: Farm) -> None:
    (declared,) = farm_app(Settings(broker=SecretStr(farm.broker.url))).conf.task_queues
    limit = declared.queue_arguments["x-delivery-limit"]
    delivered: list[Delivered] = []
    with channel(farm) as opened:
        opened.queue_purge(DEAD)
    with busy(farm, len(farm.workers)):
        # No worker takes it but the one that is lost here, again and again.
        identifier, place = accept(farm.urls[0], body(7200)), queue_name()
        while place == queue_name():
            with channel(farm) as opened:
                place, message = take(opened, queue_name(), DEAD)
                delivered.append(message)
        *alive, dead = delivered
        assert [each.headers.get("x-delivery-count", 0) for each in alive] == list(range(limit + 1))
        (death,) = dead.headers["x-death"]
        assert (death["queue"], death["reason"]) == (queue_name(), "delivery_limit")
        with channel(farm) as opened:
            _, anew = take(opened, queue_name())
        assert [each.payload for each in delivered] == [anew.payload] * len(delivered)
        assert all(map(is_for_now, (*delivered, anew)))
    assert ended(farm.urls, identifier, SOON_S)["state"] == "done"


def test_a_process_that_the_kernel_ends_costs_an_attempt_and_not_the_worker(farm: Farm) -> None:
    def begun_by_another() -> int:
        lines = [line for worker in farm.workers for line in worker.lines("an order is over")]
        return sum(line["outcome"] == "begun by another" for line in lines)

    before = begun_by_another()
    with busy(farm, 1) as (occupied,):
        name, pid, _ = occupied.split(".")
        (worker,) = [each for each in farm.workers if each.log.stem == name]
        assert children(worker.pid) == [int(pid)]
        (claim,) = claims_of(farm, occupied)
        os.kill(int(pid), signal.SIGKILL)
        while not claim.with_suffix(".2").exists():
            time.sleep(0.05)
        while begun_by_another() == before:  # what the broker delivered again began nothing, and is over
            time.sleep(0.05)
        while not children(worker.pid):
            time.sleep(0.05)
