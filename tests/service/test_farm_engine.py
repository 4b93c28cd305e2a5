"""The engine of a farm with the test as its worker, and a broker within the process: what an order comes to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from pydantic import SecretStr

from service.engine.compiles import Compiles
from service.engine.farm.app import farm_app
from service.engine.farm.broker import Broker
from service.engine.farm.engine import CeleryEngine
from service.engine.farm.ledger import Ledger, Result, Task
from service.engine.farm.message import MAX_ATTEMPTS, queue_name
from service.engine.farm.roster import Role, Roster
from service.engine.farm.statements import Statements
from service.engine.misses import Misses
from service.engine.order import Made, Order, Wanted
from service.engine.tunings import Tunings
from service.fairness.lane import Bounds, FairLane
from service.fairness.queue_time import begin_queue_time
from service.fairness.turns import Turns
from service.identity.caller import LOCAL, acting_as
from service.identity.keyring import Keyring as ApiKeyring
from service.identity.tenancy import Tenancy
from service.settings import Settings
from service.store.blobs import Blobs
from service.store.location import open_store
from service.store.nearest import Nearest
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.errors import DiagnosticError, LostWorkerError, UnavailableError, UntrustedArtifactError
from tests.trust.stores import action

WANTED = Wanted(action(1), b"graph", with_dumps=False)


@dataclass(frozen=True)
class Rig:
    """A service's engine, and the ledger and the store as a worker sees them."""

    engine: CeleryEngine
    ledger: Ledger
    blobs: Blobs
    programs: Programs
    app: Celery

    async def task(self, opened: Path) -> Task:
        """The task whose file this is."""
        task = await self.ledger.find(opened.parts[-3], opened.name)
        assert task is not None
        return task

    async def makes(self, task: Task, attempt: int = 1) -> None:
        """What a worker does about an attempt at a task."""
        assert await self.ledger.claim(task, attempt, "worker")
        entry = await self.programs.save(WANTED.action, Entry(await self.blobs.put(b"program"), ()))
        await self.ledger.finish(task, Result(attempt, "worker", entry=entry))


def with_rig(
    home: Path,
    test: Callable[[Rig], Awaitable[None]],
    *,
    keys: str = "keys",
    level: str = "process",
    signs: Role | None = None,
    ledger: type[Ledger] = Ledger,
) -> None:
    """Run a test with a service that believes the keys of this directory, and this level; a worker has `process`."""

    async def run() -> None:
        store = open_store(str(home / "store"))
        records, blobs = Records(store), Blobs(store)
        believing = Notary(Keyring(home / keys), "service", level)
        signing = Notary(Keyring(home / "keys"), "worker", "process")
        app = farm_app(Settings(broker=SecretStr("amqp://localhost")))
        app.conf.update(broker_url="memory://", broker_transport_options={})
        engine = CeleryEngine(
            ledger(store, records, Statements(believing)),
            Roster(store, records, Statements(believing)),
            Broker(app),
            Programs(records, blobs, believing),
            blobs,
            deadline_s=5,
            ahead=2.0,
            is_near=True,
        )
        if signs is not None:
            await Roster(store, records, Statements(signing)).sign(signs, "one")
        await engine.start()
        try:
            await test(
                Rig(engine, Ledger(store, records, Statements(signing)), blobs, Programs(records, blobs, signing), app)
            )
        finally:
            await engine.close()

    asyncio.run(run())


async def made(rig: Rig, home: Path) -> Made:
    """What an order comes to that a worker carries out."""
    ticket = await rig.engine.submit(Order(WANTED), lambda _: None)
    (opened,) = (home / "store" / "farm").glob(f"*/open/{ticket}")
    await rig.makes(await rig.task(opened))
    return await asyncio.wait_for(rig.engine.wait(ticket), 20)


def test_what_a_worker_made_is_the_answer(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        assert (await made(rig, tmp_path)).program == b"program"

    with_rig(tmp_path, test)


def test_workers_with_too_little_isolation_end_the_order_for_good(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        with pytest.raises(UntrustedArtifactError, match="KILN_REQUIRE_ISOLATION") as caught:
            await made(rig, tmp_path)
        assert caught.value.details["reason"] == "isolation"

    with_rig(tmp_path, test, level="landlock+seccomp")


def test_an_order_ends_that_only_workers_carry_out_whose_keys_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.engine.farm.reaper.LEASE_S", 0.2)

    async def test(rig: Rig) -> None:
        taking = asyncio.create_task(takes_in_vain(rig.app))
        with pytest.raises(UntrustedArtifactError, match="KILN_KEYS") as caught:
            await made(rig, tmp_path)
        assert caught.value.details["reason"] == "unknown_key"
        taking.cancel()

    with_rig(tmp_path, test, keys="others")


def test_a_program_that_is_gone_may_be_made_again(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        ticket = await rig.engine.submit(Order(WANTED), lambda _: None)
        (opened,) = (tmp_path / "store" / "farm").glob(f"*/open/{ticket}")
        await rig.ledger.finish(await rig.task(opened), Result(1, "worker", entry=Entry("0" * 64, ())))
        with pytest.raises(UnavailableError, match="try again"):
            await asyncio.wait_for(rig.engine.wait(ticket), 20)

    with_rig(tmp_path, test)


def test_a_graph_that_is_gone_is_there_again_for_the_next_attempt(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        ticket = await rig.engine.submit(Order(WANTED), lambda _: None)
        (opened,) = (tmp_path / "store" / "farm").glob(f"*/open/{ticket}")
        (graph,) = (tmp_path / "store" / "blobs").glob("*/*")
        task = await rig.task(opened)
        graph.unlink()
        assert await rig.ledger.claim(task, 1, "worker")
        await rig.ledger.finish(task, Result(1, "worker", problem=UnavailableError("The graph is gone.").to_problem()))
        waiting = asyncio.create_task(rig.engine.wait(ticket))
        async with asyncio.timeout(20):
            while not graph.exists():
                await asyncio.sleep(0.01)
        await rig.makes(task, 2)
        assert (await asyncio.wait_for(waiting, 20)).attempts == 2

    with_rig(tmp_path, test)


def test_a_store_that_does_not_forget_takes_nothing_from_the_answer(tmp_path: Path) -> None:
    class Keeping(Ledger):
        async def close(self, owner: str, task: str, attempts: int) -> None:
            raise UnavailableError("The store does not delete.")

    async def test(rig: Rig) -> None:
        assert (await made(rig, tmp_path)).program == b"program"

    with_rig(tmp_path, test, ledger=Keeping)


@pytest.mark.parametrize("ending", ["done", "failed", "cancelled", "done by another worker"])
def test_a_tenant_is_charged_for_the_attempts_and_not_for_the_queue_of_the_broker(tmp_path: Path, ending: str) -> None:
    queued_s, run_s, cpu_s = 1.5, 0.75, 0.25

    async def test(rig: Rig) -> None:
        spent: list[float] = []
        store = open_store(str(tmp_path / "store"))
        records, keyring = Records(store), ApiKeyring(tmp_path / "identity")
        tenancy = Tenancy(keyring, records, "")
        turns = Turns(FairLane(Bounds(1, 1), lambda _, seconds: spent.append(seconds)), keyring.tenant)

        async def is_stored(digest: str) -> bool:
            return await rig.programs.entry(digest) is not None

        misses = Misses(Nearest(records, is_stored), tenancy)
        tunings = Tunings(tenancy, rig.programs)
        compiles = Compiles(rig.engine, turns, tenancy, rig.blobs, rig.programs, misses, tunings)
        with acting_as(LOCAL):
            compiling = asyncio.create_task(compiles.program(WANTED))
        while not (found := list((tmp_path / "store" / "farm").glob("*/open/*"))):
            await asyncio.sleep(0.01)
        task = await rig.task(found[0])
        await asyncio.sleep(queued_s)
        begin = time.monotonic()
        assert await rig.ledger.claim(task, 1, "worker")
        if ending == "cancelled":
            await asyncio.sleep(1.0)
            compiling.cancel()
        else:
            entry = await rig.programs.save(WANTED.action, Entry(await rig.blobs.put(b"program"), ()))
            problem = DiagnosticError("The graph is refused.").to_problem()
            how: dict[str, Any] = {"problem": problem} if ending == "failed" else {"entry": entry}
            attempt = 1
            if ending == "done by another worker":
                unfit = UnavailableError("The store was gone.").to_problem()
                await rig.ledger.finish(task, Result(1, "worker", run_s=run_s, cpu_s=2 * cpu_s, problem=unfit))
                while not spent:
                    await asyncio.sleep(0.01)
                attempt = 2
                assert await rig.ledger.claim(task, attempt, "another")
            await rig.ledger.finish(task, Result(attempt, "worker", run_s=run_s, cpu_s=cpu_s, **how))
        with suppress(DiagnosticError, asyncio.CancelledError):
            await compiling
        while not spent:
            await asyncio.sleep(0.01)
        if ending == "cancelled":
            assert 0 < spent[0] <= time.monotonic() - begin
        elif ending == "done by another worker":
            assert spent == [2 * cpu_s, cpu_s]
        else:
            assert spent == [cpu_s]

    with_rig(tmp_path, test)


async def takes_in_vain(app: Celery) -> None:
    """Be a worker that takes messages and begins nothing."""
    with app.connection_for_read() as connection, connection.channel() as channel:
        while True:
            message = channel.basic_get(queue_name(), no_ack=True)
            await asyncio.sleep(0.01 if message is None else 0)


@pytest.mark.parametrize("signs", ["worker", None])
def test_an_order_that_is_taken_and_never_begun_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signs: Role | None
) -> None:
    monkeypatch.setattr("service.engine.farm.reaper.LEASE_S", 0.2)
    monkeypatch.setattr("service.engine.farm.roster.LEASE_S", 60.0)

    async def test(rig: Rig) -> None:
        taking = asyncio.create_task(takes_in_vain(rig.app))
        ticket = await rig.engine.submit(Order(WANTED), lambda _: None)
        with pytest.raises(LostWorkerError, match="no worker began") as caught:
            await asyncio.wait_for(rig.engine.wait(ticket), 30)
        assert caught.value.details == {"attempts": MAX_ATTEMPTS}
        taking.cancel()

    with_rig(tmp_path, test, signs=signs)


@pytest.mark.parametrize("signs", ["unfit", None])
def test_an_order_waits_as_long_as_it_is_queued_or_its_workers_say_that_they_do_not_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signs: Role | None
) -> None:
    monkeypatch.setattr("service.engine.farm.reaper.LEASE_S", 0.2)
    monkeypatch.setattr("service.engine.farm.roster.LEASE_S", 60.0)

    async def test(rig: Rig) -> None:
        taking = asyncio.create_task(takes_in_vain(rig.app) if signs == "unfit" else asyncio.sleep(0))
        ticket = await rig.engine.submit(Order(WANTED), lambda _: None)
        (opened,) = (tmp_path / "store" / "farm").glob(f"*/open/{ticket}")
        waiting = asyncio.create_task(rig.engine.wait(ticket))
        await asyncio.sleep(MAX_ATTEMPTS + 3)
        assert not waiting.done()
        taking.cancel()
        await rig.makes(await rig.task(opened))
        assert (await asyncio.wait_for(waiting, 20)).program == b"program"

    with_rig(tmp_path, test, signs=signs)


class _Full(Ledger):
    async def open(self, task: Task) -> None:
        raise UnavailableError("The store is full.")


def test_an_order_that_cannot_be_written_down_waits_for_nobody(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        counted = begin_queue_time()
        with pytest.raises(UnavailableError, match="full"):
            await rig.engine.submit(Order(WANTED), lambda _: None)
        before = counted.seconds
        await asyncio.sleep(0.05)
        assert counted.seconds == before

    with_rig(tmp_path, test, ledger=_Full)


def test_the_time_until_a_worker_begins_is_time_in_a_queue(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        counted = begin_queue_time()
        ticket = await rig.engine.submit(Order(WANTED), lambda _: None)
        (opened,) = (tmp_path / "store" / "farm").glob(f"*/open/{ticket}")
        counted.change(running=1)
        await asyncio.sleep(0.2)
        await rig.makes(await rig.task(opened))
        await asyncio.wait_for(rig.engine.wait(ticket), 20)
        waited = counted.seconds
        await asyncio.sleep(0.05)
        assert counted.seconds == waited >= 0.2

    with_rig(tmp_path, test)
