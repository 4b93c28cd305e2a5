"""What an attempt costs whose worker was lost, however long nobody could tell."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from service.engine.farm.engine import Pending
from service.engine.farm.ledger import State, Task
from service.engine.order import Order, Wanted
from service.lease import LEASE_S
from tests.simulation.alone import SIMULATED, alone
from tests.trust.stores import action


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return SIMULATED


@pytest.fixture
async def pending() -> Pending:
    """An order that was offered for the first time."""
    alone()
    wanted = Wanted(action(1), b"graph", with_dumps=False)
    components = wanted.action.components
    task = Task("order", 1, components, with_dumps=False, replaces=False, deadline_s=60.0)
    return Pending(Order(wanted), task, lambda _: None)


async def test_a_lost_attempt_costs_the_time_until_its_worker_was_heard_of_and_a_lease(pending: Pending) -> None:
    pending.claimed_by("worker")
    await asyncio.sleep(1.0)
    pending.heartbeat(State("worker", 1))
    await asyncio.sleep(5 * LEASE_S)  # the store is away, and nobody is told that it is lost
    pending.next_attempt(None)
    assert pending.order.cost.run_s == pytest.approx(1.0 + LEASE_S)


async def test_an_attempt_that_goes_on_has_cost_what_it_took_so_far(pending: Pending) -> None:
    assert pending.run_s == 0
    pending.claimed_by("worker")
    await asyncio.sleep(0.1)
    assert pending.run_s == pytest.approx(0.1)
