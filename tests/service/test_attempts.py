"""Attempts at a compile that may crash: at most two members crash, however they end and whatever others claim."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from service.store.attempts import MAX_CRASHES, REMEMBERED_S, Attempt, Crash, Crashes
from service.store.claims import LEASE_S
from service.store.records import Records
from service.trust.keyring import KeyFile, Keyring, write_key
from service.trust.notary import Notary
from tensorkiln.errors import UnavailableError
from tensorkiln.trust.verify import CLOCK_SKEW_S
from tests.clocks import HandClock, by, going_by
from tests.trust.stores import Stocked, problem

PROBLEM = {"code": "compile.crashed"}
DAY_S = 86_400


class Scene:
    """A store with a place to compile at, by the crashes of those with the right keys and of a stranger."""

    def __init__(self, home: Path) -> None:
        self.stocked, self.clock = Stocked.at(home / "store"), HandClock(time.time())
        self.crashes = Crashes(self.stocked.records, self.stocked.notary)
        others = Notary(Keyring(home / "others"), "there", "process")
        self.stranger = Crashes(self.stocked.records, others)

    @property
    def places(self) -> list[str]:
        """The places that are taken, by path."""
        found = [path for path in self.stocked.files("crashes") if path.name.count(".") < 2]
        return [str(path.relative_to(self.stocked.root)) for path in found]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncGenerator[Scene]:
    made = Scene(tmp_path)
    with going_by(made.clock):
        yield made
        await made.crashes.settle()


async def begun(crashes: Crashes) -> Attempt:
    attempt = await crashes.begin("key")
    assert isinstance(attempt, Attempt)
    return attempt


async def test_a_third_attempt_waits_until_two_have_crashed(scene: Scene) -> None:
    first, second = await begun(scene.crashes), await begun(scene.crashes)
    third = scene.crashes
    assert await third.begin("key") is None
    async with first:
        await first.crash(problem({**PROBLEM, "title": "the first"}))
    assert await third.begin("key") is None, "the second may crash as well"
    scene.clock.at += 1
    async with second:
        await second.crash(problem({**PROBLEM, "title": "the second"}))
    assert await third.begin("key") == Crash({**PROBLEM, "title": "the second"}, scene.clock.at)
    scene.clock.at += REMEMBERED_S
    assert (await begun(third)).number == 1


async def test_a_known_crash_takes_no_write(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    async def refuse(_: Records, path: str, __: object) -> bool:
        tried.append(path)
        return False

    for _attempt in range(MAX_CRASHES):
        async with await begun(scene.crashes) as attempt:
            await attempt.crash(problem(PROBLEM))
    monkeypatch.setattr(Records, "create", refuse)
    assert isinstance(await scene.crashes.begin("key"), Crash)
    assert tried == []


async def test_of_many_at_once_two_begin(scene: Scene) -> None:
    found = await asyncio.gather(*(scene.crashes.begin("key") for _ in range(16)))
    assert sum(each is not None for each in found) == MAX_CRASHES
    scene.clock.at += LEASE_S


async def test_a_compile_that_does_not_crash_gives_its_place_back(scene: Scene) -> None:
    for _attempt in range(MAX_CRASHES + 1):
        async with await begun(scene.crashes) as attempt:
            assert attempt.number == 1
        await scene.crashes.settle()
    assert not [path for path in (scene.stocked.root / "crashes").rglob("*") if path.is_file()]


async def test_attempts_of_the_dead_expire_with_their_lease(scene: Scene) -> None:
    dead = await begun(scene.crashes)
    async with await begun(scene.crashes) as attempt:
        await attempt.crash(problem(PROBLEM))
    waiting = [Crashes(scene.stocked.records, scene.stocked.notary) for _ in range(8)]
    assert [await each.begin("key") for each in waiting] == [None] * 8
    scene.clock.at += LEASE_S
    assert [await each.begin("key") for each in waiting] == [None] * 8
    scene.clock.at += 1
    found = await asyncio.gather(*(each.begin("key") for each in waiting))
    (taken,) = [each for each in found if isinstance(each, Attempt)]
    assert taken.number == 1, "the place before that of the crash"
    # One that was frozen only is not heard any more.
    await dead.crash(problem(PROBLEM))
    assert await scene.crashes.begin("key") is None
    async with taken:
        await taken.crash(problem(PROBLEM))
    assert isinstance(await scene.crashes.begin("key"), Crash)


async def test_a_heartbeat_renews_an_attempt(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.store.attempts.BEAT_S", 0.01)
    async with await begun(scene.crashes), await begun(scene.crashes):
        other = scene.crashes
        for _ in range(4):
            before = [path.read_text() for path in scene.stocked.files("crashes")]
            assert await other.begin("key") is None
            scene.clock.at += LEASE_S - 1
            while any(path.read_text() in before for path in scene.stocked.files("crashes")):
                await asyncio.sleep(0.01)


async def test_an_unreadable_place_is_a_store_failure(scene: Scene, tmp_path: Path) -> None:
    async with await begun(scene.crashes):
        (path,) = scene.stocked.root.glob("crashes/*/*")
    await scene.crashes.settle()
    path.symlink_to(tmp_path / "nowhere")
    async with asyncio.timeout(20):
        with pytest.raises(UnavailableError):
            await scene.crashes.begin("key")
    path.unlink()
    assert (await begun(scene.crashes)).number == 1


@pytest.mark.parametrize(
    ("ahead_s", "is_believed"),
    [(-REMEMBERED_S, False), (1 - REMEMBERED_S, True), (REMEMBERED_S - 1, True), (REMEMBERED_S, False), (DAY_S, False)],
)
async def test_crashes_by_wrong_clocks_are_not_believed(tmp_path: Path, ahead_s: float, is_believed: bool) -> None:
    now = int(time.time())
    (tmp_path / "keys").mkdir()
    write_key(tmp_path / "keys", KeyFile.fresh(now - DAY_S, now + 100 * DAY_S))
    stocked = Stocked.at(tmp_path / "store")
    other, here = (by(HandClock(at), Crashes(stocked.records, stocked.notary)) for at in (now + ahead_s, now))
    for _ in range(MAX_CRASHES):
        attempt = await begun(other)
        with going_by(HandClock(now + ahead_s)):
            async with attempt:
                await attempt.crash(problem(PROBLEM))
    assert isinstance(await other.begin("key"), Crash)
    assert isinstance(await here.begin("key"), Crash if is_believed else Attempt)


Forge = Callable[[Scene, str, str], dict[str, Any]]
FORGERIES: dict[str, Forge] = {
    "unsigned": lambda scene, path, other: {"holder": "forged", "beat": 0, "at": scene.clock.at},
    "by another key": lambda scene, path, other: scene.stranger.holding(path, "forged", 0),
    "of another place": lambda scene, path, other: {**scene.crashes.holding(other, "one", 0), "attempt": other},
    "of long ago": lambda scene, path, other: scene.crashes.holding(path, "one", 0),
    "not finite": lambda scene, path, other: {**scene.crashes.holding(path, "forged", 0), "beat": math.inf},
    "a crash that is not finite": lambda scene, path, other: {
        "problem": {"code": "compile.crashed", "status": math.nan},
        "at": scene.clock.at,
        "seal": scene.crashes.holding(path, "forged", 0)["seal"],
    },
}
"""What is put at the first of two places, whose paths are given."""


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_forged_place_is_free(scene: Scene, name: str) -> None:
    for _ in range(2):
        await begun(scene.crashes)
    first, second = scene.places
    await scene.stocked.records.put(first, FORGERIES[name](scene, first, second))
    if name == "of long ago":
        scene.clock.at += CLOCK_SKEW_S + 1
    attempt = await begun(scene.crashes)
    assert attempt.number == 1
    assert (taken := await scene.stocked.records.get(first)) is not None
    assert "forged" not in taken["holder"]


async def test_attempts_of_dead_members_hold_no_place(scene: Scene) -> None:
    for _ in range(2):
        await begun(scene.crashes)
    path = scene.places[0]
    said = [scene.crashes.holding(path, holder, beat) for beat in range(3) for holder in ("one", "two")]
    waiting = scene.crashes
    for content in said:
        await scene.stocked.records.put(path, content)
        assert await waiting.begin("key") is None, "each of these is new"
    for content in (*said, *said):
        scene.clock.at += LEASE_S / 8
        await scene.stocked.records.put(path, content)
        found = await waiting.begin("key")
        if isinstance(found, Attempt):
            break
    else:
        pytest.fail("the dead have kept the place")
