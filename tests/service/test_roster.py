"""Who takes part in a farm is seen by what they write, and how many orders are handed out follows from that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.engine.farm.roster import Roster
from service.engine.farm.statements import Statements
from service.lease import LEASE_S
from service.store.location import open_store
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tests.clocks import HandClock, going_by


@pytest.fixture
def clock() -> Iterator[HandClock]:
    with going_by(made := HandClock(time.time())):
        yield made


@pytest.fixture
def roster(tmp_path: Path, clock: HandClock) -> Roster:
    store = open_store(str(tmp_path / "store"))
    return Roster(store, Records(store), Statements(Notary(Keyring(tmp_path / "keys"), "worker", "process")))


async def test_whoever_does_not_sign_again_is_no_more_after_a_lease(roster: Roster, clock: HandClock) -> None:
    await roster.register("worker", "one")
    await roster.register("worker", "two")
    await roster.register("unfit", "three")
    await roster.refresh()
    assert (roster.count("worker"), roster.count("unfit"), roster.count("service")) == (2, 1, 0)
    clock.at += LEASE_S - 1
    await roster.register("worker", "two")
    await roster.refresh()
    clock.at += 2
    await roster.refresh()
    assert (roster.count("worker"), roster.count("unfit")) == (1, 0)
    await roster.deregister("worker", "two")
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
    roster: Roster, workers: int, places: int, services: int, ahead: float, most: int, width: int
) -> None:
    for number in range(workers):
        await roster.register("worker", str(number), places)
    for number in range(services):
        await roster.register("service", str(number))
    await roster.refresh()
    assert roster.width(most, ahead) == width
