"""The engine of a farm with the test as its worker: what an order comes to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from service import clock
from service.engine.farm.engine import MAX_ATTEMPTS, FarmEngine, Pending
from service.engine.farm.ledger import Ledger, Result, State, Task, generation
from service.engine.farm.roster import Role, Roster
from service.engine.order import Made, OnProgress, Order, Wanted
from service.fairness.lane import Bounds, FairLane
from service.fairness.queue_time import begin_queue_time
from service.identity.caller import LOCAL, acting_as
from service.process.periodic import periodically
from service.store.blobs import Blobs
from service.store.claims import BEAT_S, LEASE_S
from service.store.location import ObjectStore, open_store
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.errors import DiagnosticError, LostWorkerError, UnavailableError, UntrustedArtifactError
from tests.service.house import compiles_by
from tests.simulation.alone import alone, anyio_backend
from tests.simulation.store import Contents
from tests.trust.stores import action

__all__ = ["anyio_backend"]

WANTED = Wanted(action(1), b"graph", with_dumps=False)


@dataclass(frozen=True)
class Rig:
    """A service's engine, and the ledger and the store as a worker sees them."""

    engine: FarmEngine
    ledger: Ledger
    blobs: Blobs
    programs: Programs
    store: ObjectStore
    records: Records
    contents: Contents

    async def give(self, on_progress: OnProgress = lambda _: None) -> tuple[str, asyncio.Task[Made]]:
        """An order that the service has given, by its id, and what comes of it."""
        before = {*await self.ledger.opened()}
        making = asyncio.create_task(self.engine.make(Order(WANTED), on_progress))
        while not (given := {*await self.ledger.opened()} - before):
            await asyncio.sleep(0.001)
        return given.pop(), making

    async def task(self, ticket: str) -> Task:
        task = await self.ledger.find(ticket)
        assert task is not None
        return task

    async def attempt(self, ticket: str, number: int) -> Task:
        while (task := await self.ledger.find(ticket)) is None or task.attempt < number:
            await asyncio.sleep(0.01)
        return task

    async def makes(self, task: Task) -> None:
        """What a worker does about an attempt at an order."""
        assert await self.ledger.claim(task, "worker")
        await self.programs.save(WANTED.action, Entry(await self.blobs.put(b"program"), ()))
        await self.ledger.finish(task, Result("worker"))


@asynccontextmanager
async def in_rig(
    home: Path,
    *,
    keys: str = "keys",
    level: str = "process",
    signs: Role | None = None,
    ledger: type[Ledger] = Ledger,
    is_on_disk: bool = False,
) -> AsyncGenerator[Rig]:
    """A service that believes the keys of this directory, and this level; a worker has `process`.

    Time is simulated, unless the store `is_on_disk`.
    """
    store, contents = (open_store(str(home / "store")), Contents(lambda *_: None)) if is_on_disk else alone()
    records, blobs = Records(store), Blobs(store)
    believing = Notary(Keyring(home / keys), "service", level)
    signing = Notary(Keyring(home / "keys"), "worker", "process")
    engine = FarmEngine(
        ledger(records, believing),
        Roster(store, records, believing),
        Programs(records, blobs, believing),
        blobs,
        deadline_s=5,
        is_near=True,
    )
    roster, living = Roster(store, records, signing), None
    if signs is not None:
        await roster.register(signs, "one", 1)
        living = asyncio.create_task(periodically("sign", BEAT_S, partial(roster.register, signs, "one", 1)))
    await engine.start()
    try:
        ledger_of_worker = Ledger(records, signing)
        yield Rig(engine, ledger_of_worker, blobs, Programs(records, blobs, signing), store, records, contents)
    finally:
        if living is not None:
            living.cancel()
        await engine.close()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig]:
    async with in_rig(tmp_path) as made:
        yield made


async def made(rig: Rig) -> Made:
    """What an order comes to that a worker carries out."""
    ticket, making = await rig.give()
    await rig.makes(await rig.task(ticket))
    return await asyncio.wait_for(making, 100)


@pytest.mark.parametrize(
    ("believing", "setting", "reason"),
    [
        ({"level": "landlock+seccomp"}, "KILN_REQUIRE_ISOLATION", "isolation"),
        ({"keys": "others"}, "KILN_KEYS", "unknown_key"),
    ],
)
async def test_untrusted_work_ends_orders(tmp_path: Path, believing: dict[str, Any], setting: str, reason: str) -> None:
    async with in_rig(tmp_path, **believing) as rig:
        with pytest.raises(UntrustedArtifactError, match=setting) as caught:
            await made(rig)
        assert caught.value.details["reason"] == reason


async def test_a_program_that_is_gone_may_be_made_again(rig: Rig) -> None:
    ticket, waiting = await rig.give()
    await rig.ledger.finish(await rig.task(ticket), Result("worker"))
    with pytest.raises(UnavailableError, match="send the request again"):
        await asyncio.wait_for(waiting, 100)


async def test_a_graph_that_is_gone_is_there_again_for_the_next_attempt(rig: Rig) -> None:
    ticket, waiting = await rig.give()
    (graph,) = rig.contents.below("blobs/")
    task = await rig.task(ticket)
    del rig.contents.objects[graph]
    assert await rig.ledger.claim(task, "worker")
    await rig.ledger.finish(task, Result("worker", problem=UnavailableError("The graph is gone.").to_problem()))
    async with asyncio.timeout(20):
        again = await rig.attempt(ticket, 2)
    assert graph in rig.contents.objects
    await rig.makes(again)
    assert (await asyncio.wait_for(waiting, 20)).program == b"program"


async def test_a_store_that_does_not_forget_takes_nothing_from_the_answer(tmp_path: Path) -> None:
    class Keeping(Ledger):
        async def close(self, task: str) -> None:
            raise UnavailableError("The store does not delete.")

    async with in_rig(tmp_path, ledger=Keeping) as rig:
        assert (await made(rig)).program == b"program"


@pytest.mark.parametrize("ending", ["done", "failed", "cancelled", "done by another worker"])
async def test_a_tenant_is_charged_for_attempts_and_not_for_the_queue(rig: Rig, tmp_path: Path, ending: str) -> None:
    queued_s, run_s, cpu_s = 1.5, 0.75, 0.25
    spent: list[float] = []
    lane = FairLane(Bounds(1, 1), lambda _, seconds: spent.append(seconds))
    compiles = compiles_by(rig.engine, lane, tmp_path, rig.records, rig.programs)
    with acting_as(LOCAL):
        compiling = asyncio.create_task(compiles.program(WANTED))
    while not (found := rig.contents.below(f"farm/{generation()}/open/")):
        await asyncio.sleep(0.01)
    task = await rig.task(found[0].rpartition("/")[2])
    await asyncio.sleep(queued_s)
    begin = clock.monotonic()
    assert await rig.ledger.claim(task, "worker")
    if ending == "cancelled":
        await asyncio.sleep(1.0)
        compiling.cancel()
    else:
        await rig.programs.save(WANTED.action, Entry(await rig.blobs.put(b"program"), ()))
        problem = DiagnosticError("The graph is refused.").to_problem()
        how: dict[str, Any] = {"problem": problem} if ending == "failed" else {}
        if ending == "done by another worker":
            unfit = UnavailableError("The store was gone.").to_problem()
            await rig.ledger.finish(task, Result("worker", run_s=run_s, cpu_s=2 * cpu_s, problem=unfit))
            task = await rig.attempt(task.id, 2)
            assert await rig.ledger.claim(task, "another")
        await rig.ledger.finish(task, Result("worker", run_s=run_s, cpu_s=cpu_s, **how))
    with suppress(DiagnosticError, asyncio.CancelledError):
        await compiling
    while not spent:
        await asyncio.sleep(0.01)
    if ending == "cancelled":
        assert 0 < spent[0] <= clock.monotonic() - begin
    elif ending == "done by another worker":
        assert spent == [2 * cpu_s, cpu_s]
    else:
        assert spent == [cpu_s]


@pytest.mark.parametrize("signs", ["worker", None])
async def test_an_untaken_order_ends_only_without_workers(tmp_path: Path, signs: Role | None) -> None:
    async with in_rig(tmp_path, signs=signs) as rig:
        ticket, waiting = await rig.give()
        await rig.records.put(f"farm/{generation()}/claims/{ticket}", {"worker": "x"})
        if signs is None:
            with pytest.raises(LostWorkerError, match="No verified worker") as caught:
                await asyncio.wait_for(waiting, 100)
            assert caught.value.details == {"attempts": MAX_ATTEMPTS}
        else:
            await asyncio.sleep(2 * LEASE_S * MAX_ATTEMPTS)
            assert not waiting.done()
            taken = await rig.ledger.take("worker")  # A worker minds no claim that it does not believe.
            assert taken is not None
            await rig.programs.save(WANTED.action, Entry(await rig.blobs.put(b"program"), ()))
            await rig.ledger.finish(taken, Result("worker"))
            assert (await asyncio.wait_for(waiting, 20)).program == b"program"


async def test_an_order_waits_for_as_long_as_nobody_takes_it(rig: Rig) -> None:
    ticket, waiting = await rig.give()
    await asyncio.sleep(2 * LEASE_S * MAX_ATTEMPTS)
    assert not waiting.done()
    del rig.contents.objects[f"farm/{generation()}/open/{ticket}"]  # as if it had been damaged
    async with asyncio.timeout(20):
        while (task := await rig.ledger.find(ticket)) is None:
            await asyncio.sleep(0.01)
    await rig.makes(task)
    assert (await asyncio.wait_for(waiting, 20)).program == b"program"


async def test_orders_are_taken_in_the_sequence_in_which_they_were_given(rig: Rig) -> None:
    given = [await rig.give() for _ in range(5)]
    taken = [await rig.ledger.take("worker") for _ in range(6)]
    assert [each.id if each is not None else None for each in taken] == [*(ticket for ticket, _ in given), None]
    for _, making in given:
        making.cancel()
    await asyncio.gather(*(making for _, making in given), return_exceptions=True)


async def test_an_order_that_cannot_be_written_down_waits_for_nobody(tmp_path: Path) -> None:
    class Full(Ledger):
        async def open(self, task: Task) -> None:
            raise UnavailableError("The store is full.")

    async with in_rig(tmp_path, ledger=Full) as rig:
        counted = begin_queue_time()
        with pytest.raises(UnavailableError, match="full"):
            await rig.engine.make(Order(WANTED), lambda _: None)
        before = counted.seconds
        await asyncio.sleep(0.05)
        assert counted.seconds == before


async def test_the_time_until_a_worker_begins_is_time_in_a_queue(rig: Rig) -> None:
    counted = begin_queue_time()
    ticket, waiting = await rig.give()
    counted.change(running=1)
    await asyncio.sleep(0.2)
    await rig.makes(await rig.task(ticket))
    await asyncio.wait_for(waiting, 100)
    waited = counted.seconds
    await asyncio.sleep(0.05)
    assert counted.seconds == waited >= 0.2


async def test_a_lost_attempt_costs_the_time_until_its_worker_was_heard_of_and_a_lease() -> None:
    alone()
    task = Task("order", 1, WANTED.action.components, with_dumps=False, replaces=False, deadline_s=60.0)
    pending = Pending(Order(WANTED), task, lambda _: None)
    pending.claimed_by("worker")
    await asyncio.sleep(1.0)
    pending.heartbeat(State("worker", 1))
    await asyncio.sleep(5 * LEASE_S)  # the store is away, and nobody is told that it is lost
    pending.charge(None)
    assert pending.order.cost.run_s == pytest.approx(1.0 + LEASE_S)
