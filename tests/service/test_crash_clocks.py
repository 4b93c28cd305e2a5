"""A crash is remembered for minutes, whatever the clock says of whoever has written it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from service.store.attempts import Attempt, Attempts
from service.store.crashes import MAX_CRASHES, REMEMBERED_S, Crash, Crashes
from tests.trust.stores import Stocked

NOW = 1e9
DAY_S = 86_400


@pytest.mark.parametrize(
    ("ahead_s", "is_believed"),
    [(-REMEMBERED_S, False), (1 - REMEMBERED_S, True), (REMEMBERED_S - 1, True), (REMEMBERED_S, False), (DAY_S, False)],
)
def test_a_crash_of_a_clock_that_is_off_by_more_than_it_is_remembered_is_not_believed(
    tmp_path: Path, ahead_s: float, is_believed: bool
) -> None:
    async def run() -> None:
        stocked = Stocked.at(tmp_path / "store")
        other, here = (
            Attempts(Crashes(stocked.records, stocked.notary, lambda at=at: at), "key") for at in (NOW + ahead_s, NOW)
        )
        for _ in range(MAX_CRASHES):
            attempt = await other.begin()
            assert isinstance(attempt, Attempt)
            async with attempt:
                await attempt.crash({"code": "compile.crashed"})
        assert isinstance(await other.begin(), Crash)
        assert isinstance(await here.begin(), Crash if is_believed else Attempt)

    asyncio.run(run())
