"""Tenants that share a store want the same: each waits for a turn of its own, and the first that has one compiles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from service.engine.compiles import Compiled
from service.engine.order import Made, OnProgress, Order, Wanted
from service.fairness.lane import Bounds, FairLane, Share
from service.identity.caller import EVERYTHING, Caller, acting_as
from service.store.blobs import Blobs
from service.store.programs import Entry, Programs
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.errors import DiagnosticError, RateLimitedError
from tests.service.house import compiles_by
from tests.settled import settled
from tests.simulation.alone import alone, anyio_backend
from tests.trust.stores import action

__all__ = ["anyio_backend"]

AGE_S: Final = 1.0
SOON_S: Final = 0.2
"""More than a look at the store takes."""
CPU_S: Final = 2.5
WANTED: Final = Wanted(action(1), b"graph", with_dumps=False)


class Bench:
    """An engine that compiles while `goes_on` is set, and says for whom it began."""

    def __init__(self, blobs: Blobs, programs: Programs) -> None:
        self._blobs, self._programs = blobs, programs
        self.goes_on = asyncio.Event()
        self.begun: list[Order] = []
        self.given_up = 0
        self.refuses = False

    async def start(self) -> None: ...

    async def make(self, order: Order, on_progress: OnProgress) -> Made:
        self.begun.append(order)
        on_progress({"stage": "begun"})
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            await settled()
            self.given_up += 1
            raise
        order.cost.add(CPU_S)
        if self.refuses:
            raise DiagnosticError("The graph is refused.")
        entry = await self._programs.save(order.wanted.action, Entry(await self._blobs.put(b"program"), ()))
        return Made(b"program", entry, None)

    async def close(self) -> None: ...


class Service:
    """Compiles of tenants that share a store, two at a time, in simulated time."""

    def __init__(self, home: Path) -> None:
        store, _ = alone()
        records, blobs = Records(store), Blobs(store)
        programs = Programs(records, blobs, Notary(Keyring(home / "keys"), "here", "process"))
        self.spent: list[tuple[str, float]] = []
        self.lane = FairLane(
            Bounds(2, 8, AGE_S, tenant_width=1), lambda tenant, seconds: self.spent.append((tenant, seconds))
        )
        self.engine = Bench(blobs, programs)
        self.compiles = compiles_by(self.engine, self.lane, home, records, programs)

    async def ask(self, tenant: str, on_progress: OnProgress = lambda _: None) -> asyncio.Task[Compiled]:
        """What `tenant` waits for, once it is in the queue, at work, or with whoever is."""
        with acting_as(Caller(f"key:{tenant}", tenant, "", EVERYTHING)):
            asked = asyncio.create_task(self.compiles.program(WANTED, on_progress))
        await asyncio.sleep(SOON_S)
        return asked

    @asynccontextmanager
    async def busy(self, tenant: str) -> AsyncGenerator[None]:
        """Another compile of `tenant` is under way, which has its only place."""
        async with self.lane.admit(Share(tenant), 1.0):
            yield


@pytest.fixture
async def service(tmp_path: Path) -> AsyncGenerator[Service]:
    made = Service(tmp_path)
    yield made
    await made.compiles.close()
    assert (made.lane.load().waiting, made.lane.load().running) == (0, 0)


async def test_one_compile_serves_callers_in_the_queue(service: Service) -> None:
    async with service.busy("a"):
        news, late = list[object](), list[object]()
        first = await service.ask("a", news.append)
        assert service.lane.load().waiting == 1
        second = await service.ask("b")
        # Its own place was free, whatever the other waits for; and from then on nobody waits any more.
        assert (service.lane.load().waiting, len(service.engine.begun)) == (0, 1)
        third = await service.ask("c", late.append)
        assert service.lane.load().waiting == 0
        service.engine.goes_on.set()
        programs = await asyncio.gather(first, second, third)
    assert [each.program for each in programs] == [b"program"] * 3
    assert news == late == [{"stage": "begun"}]
    assert len(service.engine.begun) == 1
    assert service.spent == [("b", CPU_S)]


async def test_the_limit_of_one_tenant_refuses_no_other(service: Service) -> None:
    async with service.busy("a"), service.busy("c"):
        first = await service.ask("a")
        await asyncio.sleep(AGE_S / 2)
        second = await service.ask("b")
        with pytest.raises(RateLimitedError):
            await first
        assert not second.done()
    service.engine.goes_on.set()
    assert (await second).cache["status"] == "miss"
    assert service.spent == [("b", CPU_S)]


async def test_the_first_caller_pays_for_a_compile_that_it_leaves(service: Service) -> None:
    first = await service.ask("a")
    second = await service.ask("b")
    first.cancel()
    await asyncio.wait({first})
    assert (service.lane.load().running, service.engine.given_up) == (1, 0)
    service.engine.goes_on.set()
    assert (await second).program == b"program"
    assert service.spent == [("a", CPU_S)]


async def test_a_cancelled_compile_has_no_followers(service: Service) -> None:
    first = await service.ask("a")
    first.cancel()
    await asyncio.wait({first})
    # The work is still being cancelled: a new request begins anew.
    second = await service.ask("b")
    assert (service.engine.given_up, len(service.engine.begun)) == (1, 2)
    service.engine.goes_on.set()
    assert (await second).program == b"program"


async def test_an_error_of_the_compile_is_everybodys_and_the_next_who_asks_begins_anew(service: Service) -> None:
    service.engine.refuses = True
    asked = [await service.ask(tenant) for tenant in ("a", "b")]
    service.engine.goes_on.set()
    assert [type(each) for each in await asyncio.gather(*asked, return_exceptions=True)] == [DiagnosticError] * 2
    assert len(service.engine.begun) == 1
    with pytest.raises(DiagnosticError):
        await (await service.ask("c"))
    assert len(service.engine.begun) == 2


async def test_turns_that_come_at_one_moment_make_one_compile(service: Service) -> None:
    async with service.busy("c"), service.busy("d"):
        asked = [await service.ask(tenant) for tenant in ("a", "b")]
        assert service.lane.load().waiting == 2
    service.engine.goes_on.set()
    first, second = await asyncio.gather(*asked)
    assert first.program == second.program
    assert (len(service.engine.begun), len(service.spent)) == (1, 1)
