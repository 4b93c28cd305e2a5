"""Whoever can write to the store of a farm, and has no worker's key, cannot begin an order, keep one, or end it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.engine.farm.ledger import Ledger, Result, State, Task, generation
from service.store.evict import ORDER_LEFT_S, abandoned
from service.store.location import ObjectStore, open_store
from service.store.programs import Entry
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.errors import DiagnosticError, UnavailableError
from tensorkiln.trust.verify import CLOCK_SKEW_S
from tests.clocks import LateClock, by
from tests.trust.stores import Stocked, action, age

HOUR_S = 3600.0
REFUSED = DiagnosticError("The graph is refused.").to_problem()
PASSING = UnavailableError("The store was away.").to_problem()


def order(number: int = 1, task: str = "task", **changes: Any) -> Task:
    return replace(Task(task, 1, action(number).components, False, False, 5.0), **changes)


def path(what: str, task: str = "task") -> str:
    """Where the store has this about an order."""
    return f"farm/{generation()}/{what}/{task}"


class Ledgers:
    """Ledgers of one store, by the keys of whoever has them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.store: ObjectStore = open_store(str(home / "store"))
        self.records = Records(self.store)
        by(LateClock(HOUR_S), Keyring(home / "keys", public_directory=home / "shown")).signer()
        self.worker, self.service, self.stranger = (self.of(keys) for keys in ("keys", "shown", "others"))

    def of(self, keys: str, behind_s: float = 0.0) -> Ledger:
        notary = Notary(Keyring(self.home / keys), "", "process")
        return by(LateClock(behind_s), Ledger(self.records, notary))

    async def copy(self, source: str, target: str) -> None:
        content = await self.records.get(source)
        assert content is not None
        await self.records.put(target, content)


Forge = Callable[[Ledgers], Awaitable[None]]


async def unsigned(ledgers: Ledgers) -> None:
    await ledgers.records.put(path("claims"), {"worker": "forged", "beat": 1, "news": []})
    await ledgers.records.put(path("done"), {"worker": "forged", "problem": REFUSED})


async def forged_by(ledger: Ledger, task: Task) -> None:
    await ledger.claim(task, "forged")
    await ledger.beat(task, State("forged", 1))
    await ledger.finish(task, Result("forged", problem=REFUSED))


async def by_a_key_that_has_ended(ledgers: Ledgers) -> None:
    keyring = Keyring(ledgers.home / "old", public_directory=ledgers.home / "shown")
    await forged_by(ledgers.of("old"), order())
    for kid in [*keyring.public()]:
        keyring.revoke(kid)


async def about_another_task(ledgers: Ledgers) -> None:
    await forged_by(ledgers.worker, order(task="another"))
    for what in ("claims", "done"):
        await ledgers.copy(path(what, "another"), path(what))


async def as_something_else(ledgers: Ledgers) -> None:
    """A worker's claim where its result is looked for, and its result where its claim is."""
    await forged_by(ledgers.worker, order(task="another"))
    for what, other in (("claims", "done"), ("done", "claims")):
        await ledgers.copy(path(what, "another"), path(other))


@pytest.mark.parametrize(
    "forge",
    [
        unsigned,
        lambda ledgers: forged_by(ledgers.stranger, order()),
        by_a_key_that_has_ended,
        about_another_task,
        lambda ledgers: forged_by(ledgers.worker, order(deadline_s=0.001)),
        lambda ledgers: forged_by(ledgers.worker, order(attempt=2)),
        as_something_else,
        lambda ledgers: ledgers.records.put(path("claims"), {"worker": "x", "seal": {"key": [], "signature": 1}}),
    ],
    ids=[
        *("unsigned", "by another key", "by a key that has ended", "about another task", "about a changed order"),
        *("about another attempt", "as something else", "with a malformed seal"),
    ],
)
async def test_statements_of_strangers_about_an_order_are_ignored(tmp_path: Path, forge: Forge) -> None:
    ledgers, task = Ledgers(tmp_path), order()
    await forge(ledgers)
    service = ledgers.of("shown")
    assert await service.worker(task) == ""
    assert await service.state(task) is None
    assert await service.result(task) is None
    assert await ledgers.worker.claim(task, "one")
    assert not await ledgers.worker.claim(task, "two")
    await ledgers.worker.beat(task, State("one", 1))
    await ledgers.worker.finish(task, Result("one", problem=PASSING))
    assert await service.state(task) == State("one", 1, [])
    result = await service.result(task)
    assert result is not None
    assert result.problem == PASSING


async def test_a_sign_of_life_is_good_for_minutes(tmp_path: Path) -> None:
    ledgers, task = Ledgers(tmp_path), order()
    await ledgers.of("keys", behind_s=CLOCK_SKEW_S + 10).beat(task, State("one", 1))
    assert await ledgers.service.state(task) is None
    await ledgers.of("keys", behind_s=CLOCK_SKEW_S + 10).finish(task, Result("one", problem=REFUSED))
    assert await ledgers.service.result(task) is not None


async def test_an_old_order_is_free_once_it_is_offered_again(tmp_path: Path) -> None:
    ledgers, task = Ledgers(tmp_path), order()
    await ledgers.service.open(task)
    assert await ledgers.of("keys", behind_s=CLOCK_SKEW_S + 10).claim(task, "dead")
    assert await ledgers.service.worker(task) == "dead"
    assert await ledgers.service.state(task) is None
    assert not await ledgers.worker.claim(task, "one")
    assert await ledgers.worker.take("one") is None
    again = order(attempt=2)
    await ledgers.service.close(again.id)
    await ledgers.service.open(again)
    assert await ledgers.worker.take("one") == again


async def test_an_order_is_at_its_place_only(tmp_path: Path) -> None:
    ledgers = Ledgers(tmp_path)
    await ledgers.worker.open(order())
    await ledgers.copy(path("open"), path("open", "copied"))
    await ledgers.records.put(path("open", "strange"), {"action": 1})
    assert await ledgers.worker.find("task") == order()
    assert await ledgers.worker.find("copied") is None
    assert await ledgers.worker.find("strange") is None
    assert await ledgers.worker.take("one") == order()
    assert await ledgers.worker.take("one") is None


async def test_of_workers_that_end_at_once_one_has_made_the_program(stocked: Stocked) -> None:
    made = [Entry(await stocked.blobs.put(f"program {number}".encode()), ()) for number in range(4)]
    kept = await asyncio.gather(*(stocked.programs.offer(action(1), entry) for entry in made))
    stored = await stocked.entry(action(1).digest)
    assert {entry.program for entry in kept} == {stored.program}


async def test_an_order_that_nobody_touches_for_a_day_is_removed(stocked: Stocked, tmp_path: Path) -> None:
    ledger = Ledger(stocked.records, stocked.notary)
    await ledger.open(order())
    (file,) = (path for path in tmp_path.glob("**/farm/*/open/*") if path.is_file())
    age(file, ORDER_LEFT_S - 60)
    assert await abandoned(stocked.store) == 0
    age(file, ORDER_LEFT_S + 60)
    assert await abandoned(stocked.store) == 1
    assert await ledger.opened() == []
