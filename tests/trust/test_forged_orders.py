"""What a service makes of its orders, with the test as its worker, and as one who can write to the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service import clock
from service.engine.farm.ledger import Ledger, Result, State, Task
from service.engine.order import Made
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.errors import DiagnosticError, LostWorkerError
from tests.service.test_farm_engine import Rig, in_rig
from tests.simulation.alone import anyio_backend
from tests.trust.test_farm_orders import PASSING, REFUSED, path

__all__ = ["anyio_backend"]


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
        self.stranger = Ledger(self.records, notary)

    def content(self, what: str) -> bytes:
        return self.rig.contents.objects[path(what, self.ticket)][0]

    def overwrite(self, what: str, content: bytes) -> None:
        self.rig.contents.objects[path(what, self.ticket)] = content, clock.time()

    async def outcome(self) -> Made:
        return await asyncio.wait_for(self._making, 100)

    async def attempt(self, number: int) -> Task:
        return await asyncio.wait_for(self.rig.attempt(self.ticket, number), 100)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncGenerator[Scene]:
    async with in_rig(tmp_path) as rig:
        Keyring(tmp_path / "keys").signer()
        news: list[Any] = []
        ticket, making = await rig.give(news.append)
        yield Scene(rig, tmp_path, news, await rig.task(ticket), making)


@pytest.mark.parametrize("is_reached", [True, False])
async def test_an_order_that_is_forged_all_over_again_and_again_ends(scene: Scene, is_reached: bool) -> None:
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


async def test_old_signs_of_life_do_not_keep_the_order_of_a_worker_that_is_lost(scene: Scene) -> None:
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


async def test_replayed_statements_are_ignored(scene: Scene) -> None:
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


async def test_an_order_that_somebody_changed_is_offered_as_it_was(scene: Scene) -> None:
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


async def test_a_worker_whose_claim_was_overwritten_is_known_by_its_signs_of_life(scene: Scene) -> None:
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
