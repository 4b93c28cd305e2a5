"""Who takes part in a farm is seen by what they sign, orders are handed out by it, and nobody else is a worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from service.clock import Clock
from service.engine.farm.ledger import generation
from service.engine.farm.roster import Role, Roster
from service.store.claims import LEASE_S
from service.store.location import ObjectStore, open_store
from service.store.records import Records
from service.trust.keyring import Keyring, write_key
from service.trust.notary import Notary
from tensorkiln.trust.verify import CLOCK_SKEW_S
from tests.clocks import HandClock, LateClock, by
from tests.trust.forgery import fresh_key

HOUR_S = 3600.0
Forge = Callable[["Farm"], Awaitable[None]]


@dataclass
class Farm:
    """A store, a service that sees who is there, and the clock of all."""

    home: Path
    store: ObjectStore
    clock: HandClock = field(default_factory=lambda: HandClock(time.time()))
    roster: Roster = field(init=False)

    def __post_init__(self) -> None:
        # As a service of a cluster has them.
        by(LateClock(HOUR_S), Keyring(self.home / "keys", public_directory=self.home / "shown")).signer()
        self.roster = self.member("shown")

    def member(self, keys: str = "keys", behind_s: float = 0.0, clock: Clock | None = None) -> Roster:
        """Somebody with the keys of a directory, whose clock may be behind, or another."""
        notary = Notary(Keyring(self.home / keys), "", "process")
        return by(clock or LateClock(behind_s, self.clock), Roster(self.store, Records(self.store), notary))

    def path(self, name: str = "one") -> Path:
        return self.home / "store" / "members" / generation() / f"worker.{name}"

    async def put(self, content: bytes) -> None:
        await self.store.write(str(self.path().relative_to(self.home / "store")), content, durable=False)

    async def workers(self) -> int:
        await self.roster.refresh()
        return self.roster.count("worker")


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    return Farm(tmp_path, open_store(str(tmp_path / "store")))


def refused() -> float:
    return REGISTRY.get_sample_value("kiln_farm_refused_total", {"kind": "member"}) or 0.0


async def signed_with_a_key_that_has_ended(farm: Farm) -> None:
    (farm.home / "old").mkdir()
    write_key(farm.home / "old", fresh_key(-10.0, 40 * 86_400))
    await farm.member("old").register("worker", "one")
    ended = by(farm.clock, Keyring(farm.home / "old"))
    for kid in ended.public():
        revoked = ended.revoke(kid)
        write_key(farm.home / "shown", revoked)


async def of_another_name(farm: Farm) -> None:
    await farm.member().register("worker", "two")
    await farm.put(farm.path("two").read_bytes())
    farm.path("two").unlink()


def signed(role: Role = "worker", keys: str = "keys", behind_s: float = 0.0) -> Forge:
    return lambda farm: farm.member(keys, behind_s).register(role, "one")


def seals(strange: Any) -> Forge:
    return lambda farm: Records(farm.store).put(f"members/{generation()}/worker.one", strange)


OF_ANOTHER_KEY, LONG_AGO = signed(keys="others"), signed(behind_s=CLOCK_SKEW_S + 10)


@pytest.mark.parametrize(
    "forge",
    [
        seals({}),
        OF_ANOTHER_KEY,
        signed_with_a_key_that_has_ended,
        of_another_name,
        LONG_AGO,
        signed(behind_s=-CLOCK_SKEW_S - 10),
        seals({"seal": "x"}),
        seals({"seal": {"key": ["x"], "signature": 1}}),
        seals({"seal": {"key": "x"}, "at": float("nan")}),
        seals([1]),
    ],
)
async def test_a_forged_sign_is_nobodys(farm: Farm, forge: Forge) -> None:
    await forge(farm)
    assert await farm.workers() == 0
    assert farm.roster.width(64, 2.0) == 64
    assert farm.roster.lacks_workers()
    await farm.member().register("worker", "another")
    assert await farm.workers() == 1


async def test_refused_members_are_counted_once_and_logged(farm: Farm) -> None:
    before = refused()
    await OF_ANOTHER_KEY(farm)
    for _ in range(3):
        await farm.put(farm.path().read_bytes())
        assert await farm.workers() == 0
    assert refused() == before + 1
    assert "KILN_KEYS" in farm.roster.lacks_workers()


GONE = "no worker of the farm is alive"


@pytest.mark.parametrize(
    ("sign", "ago_s", "told", "count"),
    [
        (signed(), CLOCK_SKEW_S + 10, GONE, 0),
        (signed("unfit"), CLOCK_SKEW_S + 10, GONE, 0),
        (LONG_AGO, 0.0, "clocks", 1),
        (OF_ANOTHER_KEY, CLOCK_SKEW_S + 10, "KILN_KEYS", 1),
    ],
    ids=["gone before a service came", "and unfit", "an old sign in a new file", "a forged sign in an old file"],
)
async def test_a_worker_that_went_is_gone_and_what_is_no_sign_is_refused_however_old_its_file_is(
    farm: Farm, sign: Forge, ago_s: float, told: str, count: int
) -> None:
    before = refused()
    await sign(farm)
    farm.clock.at += ago_s
    for _ in range(2):
        assert await farm.workers() == 0
        assert told in farm.roster.lacks_workers()
        assert told != GONE or farm.roster.lacks_workers() == GONE
    assert refused() == before + count


async def test_a_service_whose_clock_is_ahead_says_so_of_workers_that_sign_still(farm: Farm) -> None:
    before, worker = refused(), farm.member(behind_s=CLOCK_SKEW_S + 10)
    farm.clock.at += CLOCK_SKEW_S + 10
    await worker.register("worker", "one")
    assert await farm.workers() == 0
    await asyncio.sleep(0.02)  # until its file has another time
    await worker.register("worker", "one")
    assert await farm.workers() == 0
    assert "clocks" in farm.roster.lacks_workers()
    assert refused() == before + 1


@pytest.mark.parametrize("is_removed", [False, True])
async def test_old_signs_that_are_put_there_again_keep_nobody_alive(farm: Farm, is_removed: bool) -> None:
    worker = farm.member()
    recorded: list[bytes] = []
    for _ in range(3):
        await worker.register("worker", "one")
        recorded.append(farm.path().read_bytes())
        assert await farm.workers() == 1
    for step in range(12):
        farm.clock.at += LEASE_S / 4
        if is_removed and farm.path().exists():
            farm.path().unlink()
            await farm.workers()
        await farm.put(recorded[step % 3])
        assert await farm.workers() == (step < 4 and not is_removed)
    assert farm.roster.count("worker") == 0


async def test_a_worker_that_became_unfit_is_not_made_fit_by_what_it_signed_before(farm: Farm) -> None:
    worker = farm.member()
    await worker.register("worker", "one")
    fit = farm.path().read_bytes()
    assert await farm.workers() == 1
    await worker.register("unfit", "one")
    assert await farm.workers() == 0
    await farm.put(fit)
    assert await farm.workers() == 0
    assert farm.roster.count("unfit") == 1


async def test_a_clock_that_is_set_back_takes_nobody_away(farm: Farm) -> None:
    clock = LateClock(0.0, farm.clock)
    worker = farm.member(clock=clock)
    await worker.register("worker", "one")
    assert await farm.workers() == 1
    farm.clock.at += LEASE_S + 1
    clock.behind_s = 60
    await worker.register("worker", "one")
    assert await farm.workers() == 1


async def test_members_expire_a_lease_after_their_last_signature(farm: Farm) -> None:
    roster, member = farm.roster, farm.member()
    await member.register("worker", "one")
    await member.register("worker", "two")
    await member.register("unfit", "three")
    await roster.refresh()
    assert (roster.count("worker"), roster.count("unfit"), roster.count("service")) == (2, 1, 0)
    farm.clock.at += LEASE_S - 1
    await member.register("worker", "two")
    await roster.refresh()
    farm.clock.at += 2
    await roster.refresh()
    assert (roster.count("worker"), roster.count("unfit")) == (1, 0)
    await member.deregister("worker", "two")
    await roster.refresh()
    assert roster.count("worker") == 0


@pytest.mark.parametrize(
    ("workers", "places", "services", "ahead", "most", "width"),
    [
        (0, 1, 1, 2.0, 64, 64),
        (0, 1, 0, 2.0, 1, 1),
        (1, 1, 1, 2.0, 64, 4),
        (8, 1, 2, 2.0, 64, 10),
        (2, 4, 2, 2.0, 64, 10),
        (8, 1, 0, 2.0, 64, 18),
        (8, 1, 1, 10_000.0, 600, 600),
        (100, 1, 1, 2.0, 64, 64),
    ],
)
async def test_a_service_hands_out_its_share_of_what_workers_can_soon_do(
    farm: Farm, workers: int, places: int, services: int, ahead: float, most: int, width: int
) -> None:
    for number in range(workers):
        await farm.member().register("worker", str(number), places)
    for number in range(services):
        await farm.member().register("service", str(number))
    await farm.roster.refresh()
    assert farm.roster.width(most, ahead) == width
