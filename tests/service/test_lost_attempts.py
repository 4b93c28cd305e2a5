"""What an attempt costs whose worker was lost, however long nobody could tell."""

from __future__ import annotations

import asyncio

import pytest

from service.engine.farm.engine import Pending
from service.engine.farm.ledger import State, Task
from service.engine.order import Order, Wanted
from service.lease import LEASE_S
from tests.simulation.alone import in_simulated_time
from tests.trust.stores import action


def pending() -> Pending:
    """An order that was offered for the first time."""
    wanted = Wanted(action(1), b"graph", with_dumps=False)
    components = wanted.action.components
    task = Task("order", 1, components, with_dumps=False, replaces=False, deadline_s=60.0)
    return Pending(Order(wanted), task, lambda _: None)


def test_a_lost_attempt_costs_the_time_until_its_worker_was_heard_of_and_a_lease() -> None:
    async def test(*_: object) -> None:
        lost = pending()
        lost.claimed_by("worker")
        await asyncio.sleep(1.0)
        lost.heartbeat(State("worker", 1))
        await asyncio.sleep(5 * LEASE_S)  # the store is away, and nobody is told that it is lost
        lost.next_attempt(None)
        assert lost.order.cost.run_s == pytest.approx(1.0 + LEASE_S)

    in_simulated_time(test)


def test_an_attempt_that_goes_on_has_cost_what_it_took_so_far() -> None:
    async def test(*_: object) -> None:
        running = pending()
        assert running.run_s == 0
        running.claimed_by("worker")
        await asyncio.sleep(0.1)
        assert running.run_s == pytest.approx(0.1)

    in_simulated_time(test)
