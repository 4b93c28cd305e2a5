"""A crash is remembered for minutes, whatever the clock says of whoever has written it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from service.store.attempts import MAX_CRASHES, REMEMBERED_S, Attempt, Attempts, Crash, Crashes
from service.trust.keyring import KeyFile, write_key
from tests.clocks import HandClock, by, going_by
from tests.trust.stores import Stocked, problem

DAY_S = 86_400


@pytest.mark.parametrize(
    ("ahead_s", "is_believed"),
    [(-REMEMBERED_S, False), (1 - REMEMBERED_S, True), (REMEMBERED_S - 1, True), (REMEMBERED_S, False), (DAY_S, False)],
)
async def test_a_crash_of_a_clock_that_is_off_by_more_than_it_is_remembered_is_not_believed(
    tmp_path: Path, ahead_s: float, is_believed: bool
) -> None:
    now = int(time.time())
    (tmp_path / "keys").mkdir()
    write_key(tmp_path / "keys", KeyFile.fresh(now - DAY_S, now + 100 * DAY_S))
    stocked = Stocked.at(tmp_path / "store")
    other, here = (
        by(HandClock(at), Attempts(Crashes(stocked.records, stocked.notary), "key")) for at in (now + ahead_s, now)
    )
    for _ in range(MAX_CRASHES):
        attempt = await other.begin()
        assert isinstance(attempt, Attempt)
        with going_by(HandClock(now + ahead_s)):
            async with attempt:
                await attempt.crash(problem({"code": "compile.crashed"}))
    assert isinstance(await other.begin(), Crash)
    assert isinstance(await here.begin(), Crash if is_believed else Attempt)
