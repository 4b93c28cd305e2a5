"""What a farm has in its store: one program of an action, and nothing that was left for long."""

from __future__ import annotations

import asyncio
from pathlib import Path

from service.engine.farm.ledger import Ledger, Task
from service.engine.farm.statements import Statements
from service.store.evict import ORDER_LEFT_S, abandoned
from service.store.programs import Entry
from tests.trust.stores import Stocked, action, age

TASK = Task("order", 1, action(1).components, False, False, 60.0)


async def test_of_workers_that_end_at_once_one_has_made_the_program(stocked: Stocked) -> None:
    made = [Entry(await stocked.blobs.put(f"program {number}".encode()), ()) for number in range(4)]
    kept = await asyncio.gather(*(stocked.programs.offer(action(1), entry) for entry in made))
    stored = await stocked.entry(action(1).digest)
    assert {entry.program for entry in kept} == {stored.program}


async def test_an_order_that_nobody_touches_for_a_day_is_removed(stocked: Stocked, tmp_path: Path) -> None:
    ledger = Ledger(stocked.records, Statements(stocked.notary))
    await ledger.open(TASK)
    (order,) = (path for path in tmp_path.glob("**/farm/*/open/*") if path.is_file())
    age(order, ORDER_LEFT_S - 60)
    assert await abandoned(stocked.store) == 0
    age(order, ORDER_LEFT_S + 60)
    assert await abandoned(stocked.store) == 1
    assert await ledger.opened() == []
