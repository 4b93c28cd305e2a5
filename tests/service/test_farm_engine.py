"""The engine of a farm with the test as its worker, and a broker within the process: what an order comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from service.engine.farm.app import farm_app
from service.engine.farm.broker import Broker
from service.engine.farm.engine import CeleryEngine
from service.engine.farm.ledger import Ledger, Result
from service.engine.order import Made, Order, Wanted
from service.settings import Settings
from service.store.blobs import Blobs
from service.store.location import open_store
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.errors import UnavailableError, UntrustedArtifactError
from tests.trust.stores import action

WANTED = Wanted(action(1), b"graph", with_dumps=False)


@dataclass(frozen=True)
class Rig:
    """A service's engine, and the ledger and the store as a worker sees them."""

    engine: CeleryEngine
    ledger: Ledger
    blobs: Blobs
    programs: Programs

    async def makes(self, task: tuple[str, str]) -> None:
        """What a worker does about the first attempt of a task."""
        assert await self.ledger.claim(*task, 1, "worker")
        entry = await self.programs.save(WANTED.action, Entry(await self.blobs.put(b"program"), ()))
        await self.ledger.finish(*task, Result(1, "worker", entry=entry))


def with_rig(
    home: Path,
    test: Callable[[Rig], Awaitable[None]],
    *,
    keys: str = "keys",
    level: str = "process",
    ledger: type[Ledger] = Ledger,
) -> None:
    """Run a test with a service that believes the keys of this directory, and this level; a worker has `process`."""

    async def run() -> None:
        store = open_store(str(home / "store"))
        records, blobs = Records(store), Blobs(store)
        believing = Notary(Keyring(home / keys), "service", level)
        signing = Notary(Keyring(home / "keys"), "worker", "process")
        app = farm_app(Settings(broker=SecretStr("redis://localhost")))
        app.conf.update(broker_url="memory://", broker_transport_options={})
        engine = CeleryEngine(
            ledger(store, records),
            Broker(app),
            Programs(records, blobs, believing),
            blobs,
            deadline_s=5,
            is_near=True,
        )
        await engine.start()
        try:
            await test(Rig(engine, Ledger(store, records), blobs, Programs(records, blobs, signing)))
        finally:
            await engine.close()

    asyncio.run(run())


async def made(rig: Rig, home: Path) -> Made:
    """What an order comes to that a worker carries out."""
    ticket = await rig.engine.submit(Order(WANTED), lambda _: None)
    (opened,) = (home / "store" / "farm").glob(f"*/open/{ticket}")
    await rig.makes((opened.parts[-3], ticket))
    return await asyncio.wait_for(rig.engine.wait(ticket), 20)


def test_what_a_worker_made_is_the_answer(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        assert (await made(rig, tmp_path)).program == b"program"

    with_rig(tmp_path, test)


@pytest.mark.parametrize(
    ("keys", "level", "reason", "named"),
    [
        ("keys", "landlock+seccomp", "isolation", "KILN_REQUIRE_ISOLATION"),
        ("others", "process", "unknown_key", "KILN_KEYS"),
    ],
)
def test_workers_that_are_not_believed_end_the_order_for_good(
    tmp_path: Path, keys: str, level: str, reason: str, named: str
) -> None:
    async def test(rig: Rig) -> None:
        with pytest.raises(UntrustedArtifactError, match=named) as caught:
            await made(rig, tmp_path)
        assert caught.value.details["reason"] == reason

    with_rig(tmp_path, test, keys=keys, level=level)


def test_a_program_that_is_gone_may_be_made_again(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        ticket = await rig.engine.submit(Order(WANTED), lambda _: None)
        (opened,) = (tmp_path / "store" / "farm").glob(f"*/open/{ticket}")
        await rig.ledger.finish(opened.parts[-3], ticket, Result(1, "worker", entry=Entry("0" * 64, ())))
        with pytest.raises(UnavailableError, match="try again"):
            await asyncio.wait_for(rig.engine.wait(ticket), 20)

    with_rig(tmp_path, test)


def test_a_store_that_does_not_forget_takes_nothing_from_the_answer(tmp_path: Path) -> None:
    class Keeping(Ledger):
        async def close(self, owner: str, task: str, attempts: int) -> None:
            raise UnavailableError("The store does not delete.")

    async def test(rig: Rig) -> None:
        assert (await made(rig, tmp_path)).program == b"program"

    with_rig(tmp_path, test, ledger=Keeping)
