"""Who is at something is one, whoever else comes, and whatever becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from service.store.claims import LEASE_S, Claims
from service.store.location import open_store
from service.store.records import Records
from tensorkiln.errors import UnavailableError
from tests.clocks import HandClock, by

PATH = "claims/one"


async def living(_: Mapping[str, Any]) -> bool:
    return True


async def gone(_: Mapping[str, Any]) -> bool:
    return False


async def taken(records: Records, group: str, number: int) -> Mapping[str, Any] | None:
    """What keeps one of a group from the claim, of whom all others are dead."""

    async def stands(claim: Mapping[str, Any]) -> bool:
        return claim["holder"].startswith(group)

    return await Claims(records).take(PATH, lambda: {"holder": f"{group}{number}"}, stands)


@pytest.mark.parametrize("location", ["memory:///", ""])
async def test_of_many_who_claim_what_is_free_or_was_a_dead_ones_one_has_it(tmp_path: Path, location: str) -> None:
    records = Records(open_store(location or str(tmp_path)))
    for group in "abc":
        found = await asyncio.gather(*(taken(records, group, number) for number in range(8)))
        assert found.count(None) == 1
        assert await records.get(PATH) == {"holder": f"{group}{found.index(None)}"}
    assert await records.names("claims", 10) == ["one"], "no lock is left"


async def test_one_that_is_lost_while_it_replaces_a_claim_holds_it_up_for_a_lease(tmp_path: Path) -> None:
    class Dying(Records):
        async def put(self, path: str, content: Mapping[str, Any], *, durable: bool = False) -> None:
            raise asyncio.CancelledError

        async def delete(self, path: str) -> None:
            raise asyncio.CancelledError

    store, clock = open_store(str(tmp_path)), HandClock(0.0)
    records = Records(store)
    await records.put(PATH, {"holder": "dead"})
    with pytest.raises(asyncio.CancelledError):
        await Claims(Dying(store)).take(PATH, lambda: {"holder": "dying"}, gone)
    claims = by(clock, Claims(records))
    for clock.at in (0.0, LEASE_S, LEASE_S + 1):
        assert await claims.take(PATH, lambda: {"holder": "next"}, gone) == {"holder": "dead"}
    assert await claims.take(PATH, lambda: {"holder": "next"}, gone) is None


async def test_a_lock_that_is_taken_again_is_not_that_of_before(tmp_path: Path) -> None:
    class Slow(Records):
        """Whose replacement another one meets."""

        async def put(self, path: str, content: Mapping[str, Any], *, durable: bool = False) -> None:
            for _ in range(2):
                assert await other.take(PATH, lambda: {"holder": "other"}, gone) == {"holder": "dead"}
            if is_full:
                raise UnavailableError("The store is full.")
            await super().put(path, content, durable=durable)

    clock, is_full = HandClock(0.0), True
    other = by(clock, Claims(Records(open_store(str(tmp_path)))))
    store = open_store(str(tmp_path))
    await Records(store).put(PATH, {"holder": "dead"})
    claims = Claims(Slow(store))
    with pytest.raises(UnavailableError):
        await claims.take(PATH, lambda: {"holder": "one"}, gone)
    clock.at, is_full = LEASE_S + 1, False
    assert await claims.take(PATH, lambda: {"holder": "one"}, gone) is None
    assert await Records(store).get(PATH) == {"holder": "one"}


async def test_live_workers_keep_claims_while_the_store_is_away(tmp_path: Path) -> None:
    records = Records(open_store(str(tmp_path)))
    claims = Claims(records)
    assert await claims.take(PATH, lambda: {"holder": "one"}, living) is None
    assert await claims.take(PATH, lambda: {"holder": "two"}, living) == {"holder": "one"}
    (tmp_path / PATH).unlink()
    (tmp_path / PATH).symlink_to(tmp_path / "nowhere")
    with pytest.raises(UnavailableError):
        await claims.take(PATH, lambda: {"holder": "two"}, living)
