"""Whoever can write to the store of a farm, and has no worker's key, cannot begin an order, keep one, or end it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service import clock
from service.engine.farm.ledger import Ledger, Result, State, Task
from service.engine.farm.statements import FRESH_S, Statements, generation
from service.engine.order import Made
from service.lease import LEASE_S
from service.store.location import ObjectStore, open_store
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.errors import DiagnosticError, LostWorkerError, UnavailableError
from tests.clocks import LateClock, by
from tests.service.test_farm_engine import Rig, with_rig
from tests.trust.stores import action

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
        return by(LateClock(behind_s), Ledger(self.records, Statements(notary)))

    async def copy(self, what: str, source: str, target: str) -> None:
        """Have what is stated at one path at another."""
        content = await self.records.get(path(what, source))
        assert content is not None
        await self.records.put(path(what, target), content)


Forge = Callable[[Ledgers], Awaitable[None]]


async def unsigned(ledgers: Ledgers) -> None:
    await ledgers.records.put(path("claims"), {"worker": "forged", "beat": 1, "news": []})
    await ledgers.records.put(path("done"), {"worker": "forged", "problem": REFUSED})


async def forged_by(ledger: Ledger, task: Task) -> None:
    await ledger.claim(task, "forged")
    await ledger.beat(task, State("forged", 1))
    await ledger.finish(task, Result("forged", problem=REFUSED))


async def by_another_key(ledgers: Ledgers) -> None:
    await forged_by(ledgers.stranger, order())


async def by_a_key_that_has_ended(ledgers: Ledgers) -> None:
    keyring = Keyring(ledgers.home / "old", public_directory=ledgers.home / "shown")
    await forged_by(ledgers.of("old"), order())
    for kid in [*keyring.public()]:
        keyring.revoke(kid)


async def about_another_task(ledgers: Ledgers) -> None:
    await forged_by(ledgers.worker, order(task="another"))
    for what in ("claims", "done"):
        await ledgers.copy(what, "another", "task")


async def about_an_order_that_was_changed(ledgers: Ledgers) -> None:
    await forged_by(ledgers.worker, order(deadline_s=0.001))


async def about_another_attempt(ledgers: Ledgers) -> None:
    await forged_by(ledgers.worker, order(attempt=2))


async def as_something_else(ledgers: Ledgers) -> None:
    """A worker's claim where its result is looked for, and its result where its claim is."""
    await forged_by(ledgers.worker, order(task="another"))
    for what, other in (("claims", "done"), ("done", "claims")):
        content = await ledgers.records.get(path(what, "another"))
        assert content is not None
        await ledgers.records.put(path(other), content)


async def with_a_seal_that_is_none(ledgers: Ledgers) -> None:
    await ledgers.records.put(path("claims"), {"worker": "forged", "seal": {"key": [], "signature": 1}})


@pytest.mark.parametrize(
    "forge",
    [
        unsigned,
        by_another_key,
        by_a_key_that_has_ended,
        about_another_task,
        about_an_order_that_was_changed,
        about_another_attempt,
        as_something_else,
        with_a_seal_that_is_none,
    ],
)
def test_what_no_worker_states_of_the_order_is_as_if_it_were_not_there(tmp_path: Path, forge: Forge) -> None:
    async def run() -> None:
        ledgers, task = Ledgers(tmp_path), order()
        await forge(ledgers)
        service = ledgers.of("shown")
        assert await service.worker(task) == ""
        assert await service.state(task) is None
        assert await service.result(task) is None
        # It keeps no worker from the order.
        assert await ledgers.worker.claim(task, "one")
        assert not await ledgers.worker.claim(task, "two")
        await ledgers.worker.beat(task, State("one", 1))
        await ledgers.worker.finish(task, Result("one", problem=PASSING))
        assert await service.state(task) == State("one", 1, [])
        result = await service.result(task)
        assert result is not None
        assert result.problem == PASSING

    asyncio.run(run())


def test_a_sign_of_life_is_good_for_minutes(tmp_path: Path) -> None:
    async def run() -> None:
        ledgers, task = Ledgers(tmp_path), order()
        await ledgers.of("keys", behind_s=FRESH_S + 10).beat(task, State("one", 1))
        assert await ledgers.service.state(task) is None
        # How an order has ended is so for good.
        await ledgers.of("keys", behind_s=FRESH_S + 10).finish(task, Result("one", problem=REFUSED))
        assert await ledgers.service.result(task) is not None

    asyncio.run(run())


def test_an_order_that_was_begun_long_ago_is_nobody_elses_until_its_service_offers_it_again(tmp_path: Path) -> None:
    async def run() -> None:
        ledgers, task = Ledgers(tmp_path), order()
        await ledgers.service.open(task)
        assert await ledgers.of("keys", behind_s=FRESH_S + 10).claim(task, "dead")
        assert await ledgers.service.worker(task) == "dead"
        assert await ledgers.service.state(task) is None
        assert not await ledgers.worker.claim(task, "one")
        assert await ledgers.worker.take("one") is None
        again = order(attempt=2)
        await ledgers.service.close(again.id)
        await ledgers.service.open(again)
        assert await ledgers.worker.take("one") == again

    asyncio.run(run())


def test_an_order_is_at_its_place_only(tmp_path: Path) -> None:
    async def run() -> None:
        ledgers = Ledgers(tmp_path)
        await ledgers.worker.open(order())
        await ledgers.copy("open", "task", "copied")
        await ledgers.records.put(path("open", "strange"), {"action": 1})
        assert await ledgers.worker.find("task") == order()
        assert await ledgers.worker.find("copied") is None
        assert await ledgers.worker.find("strange") is None
        assert await ledgers.worker.take("one") == order()
        assert await ledgers.worker.take("one") is None

    asyncio.run(run())


# What the service makes of it, with the test as its worker, and as its enemy.


class Scene:
    """An order that a service has given, and what can be done to it."""

    def __init__(self, rig: Rig, home: Path, news: list[Any], task: Task, making: asyncio.Task[Made]) -> None:
        self.rig = rig
        self.ticket = task.id
        self._making = making
        self.task = task
        self.news = news
        notary = Notary(Keyring(home / "others"), "", "process")
        self.records = rig.records
        self.stranger = Ledger(self.records, Statements(notary))

    def content(self, what: str) -> bytes:
        """The bytes that the store has about the order."""
        return self.rig.contents.objects[path(what, self.ticket)][0]

    def overwrite(self, what: str, content: bytes) -> None:
        """Have others there."""
        self.rig.contents.objects[path(what, self.ticket)] = content, clock.time()

    async def outcome(self) -> Made:
        return await asyncio.wait_for(self._making, 100)

    async def attempt(self, number: int) -> Task:
        """This attempt, once the service has offered it."""
        return await asyncio.wait_for(self.rig.attempt(self.ticket, number), 100)


def with_order(home: Path, test: Callable[[Scene], Awaitable[None]]) -> None:
    """Run a test about an order of a service."""

    async def run(rig: Rig) -> None:
        Keyring(home / "keys").signer()
        news: list[Any] = []
        ticket, making = await rig.give(news.append)
        await test(Scene(rig, home, news, await rig.task(ticket), making))

    with_rig(home, run)


def test_forged_files_neither_end_an_order_nor_keep_it(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await forged_by(scene.stranger, scene.task)
        for name in ("strange", "a.b.c", f"{scene.ticket}.x"):
            await scene.records.put(path("claims", name), {})
        scene.overwrite("claims", b"[")
        waiting = asyncio.create_task(scene.outcome())
        await asyncio.sleep(2 * LEASE_S)
        assert not waiting.done()
        await scene.rig.makes(scene.task)
        assert (await waiting).program == b"program"

    with_order(tmp_path, test)


@pytest.mark.parametrize("is_reached", [True, False])
def test_an_order_that_is_forged_all_over_again_and_again_ends(tmp_path: Path, is_reached: bool) -> None:
    async def test(scene: Scene) -> None:
        async def forge() -> None:
            while True:
                await scene.records.put(path("claims", scene.ticket), {"worker": "forged"})
                await scene.records.put(path("done", scene.ticket), {"problem": REFUSED})
                await asyncio.sleep(0.01)

        forging = asyncio.create_task(forge())
        waiting = asyncio.create_task(scene.outcome())
        if is_reached:  # A worker's result is destroyed, and what it has made is not.
            await scene.rig.makes(scene.task)
            assert (await waiting).program == b"program"
        else:
            with pytest.raises(LostWorkerError):
                await waiting
        forging.cancel()

    with_order(tmp_path, test)


def test_old_signs_of_life_do_not_keep_the_order_of_a_worker_that_is_lost(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        ledger, task = scene.rig.ledger, scene.task
        assert await ledger.claim(task, "one")
        recorded: list[bytes] = []
        for beat in (1, 2):
            await ledger.beat(task, State("one", beat))
            recorded.append(scene.content("claims"))
            await asyncio.sleep(0.3)

        async def replay() -> None:
            while True:
                for content in recorded:
                    scene.overwrite("claims", content)
                    await asyncio.sleep(0.05)

        replaying = asyncio.create_task(replay())
        again = await scene.attempt(2)
        replaying.cancel()
        with suppress(asyncio.CancelledError):
            await replaying
        await scene.rig.makes(again)
        assert (await scene.outcome()).program == b"program"

    with_order(tmp_path, test)


def test_what_has_passed_is_not_made_to_pass_again(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        ledger, task = scene.rig.ledger, scene.task
        assert await ledger.claim(task, "one")
        await ledger.finish(task, Result("one", problem=PASSING))
        old = scene.content("done")
        waiting = asyncio.create_task(scene.outcome())
        again = await scene.attempt(2)
        assert await ledger.claim(again, "two")
        for beat in range(1, 20):
            await ledger.beat(again, State("two", beat))
            scene.overwrite("done", old)
            await asyncio.sleep(0.5)
        assert not waiting.done()
        assert {"stage": "retry", "attempt": 3} not in scene.news
        await ledger.finish(again, Result("two", problem=REFUSED))
        with pytest.raises(DiagnosticError):
            await waiting

    with_order(tmp_path, test)


def test_an_order_that_somebody_changed_is_offered_as_it_was(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        changed = replace(scene.task, deadline_s=0.001)
        ledger = scene.rig.ledger
        await ledger.open(changed)
        assert await ledger.claim(changed, "one")
        await ledger.finish(changed, Result("one", problem=REFUSED))
        waiting = asyncio.create_task(scene.outcome())
        while await ledger.find(changed.id) == changed:
            assert not waiting.done()
            await asyncio.sleep(0.05)
        assert await ledger.find(changed.id) == scene.task
        await scene.rig.makes(scene.task)
        assert (await waiting).program == b"program"

    with_order(tmp_path, test)


def test_a_worker_whose_claim_was_overwritten_is_known_by_its_signs_of_life(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        ledger, task = scene.rig.ledger, scene.task
        assert await ledger.claim(task, "one")
        await scene.records.put(path("claims", scene.ticket), {"worker": "forged"})
        for beat in range(1, 20):
            await ledger.beat(task, State("one", beat, ({"stage": f"stage {beat}"},) * beat))
            await asyncio.sleep(0.5)
        assert {"stage": "stage 19"} in scene.news
        assert not [each for each in scene.news if each["stage"] == "retry"]
        await ledger.finish(task, Result("one", problem=REFUSED))
        with pytest.raises(DiagnosticError):
            await scene.outcome()

    with_order(tmp_path, test)
