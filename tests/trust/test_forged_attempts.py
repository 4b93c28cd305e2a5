"""Whoever can write to the store, and has no key, keeps nobody from a compile by saying that others are at it."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from service.lease import LEASE_S
from service.store.attempts import Attempt, Attempts, Crashes
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.trust.verify import CLOCK_SKEW_S
from tests.clocks import HandClock, going_by
from tests.service.test_attempts import begun
from tests.trust.stores import Stocked


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

    async def record(self, path: str) -> dict[str, Any]:
        content = await self.stocked.records.get(path)
        assert content is not None
        return content


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncGenerator[Scene]:
    made = Scene(tmp_path)
    with going_by(made.clock):
        yield made
        await made.crashes.settle()


async def unsigned(scene: Scene, path: str, _: str) -> None:
    await scene.stocked.records.put(path, {"holder": "forged", "beat": 0, "at": scene.clock.at})


async def by_another_key(scene: Scene, path: str, _: str) -> None:
    await scene.stocked.records.put(path, scene.stranger.holding(path, "forged", 0))


async def of_another_place(scene: Scene, path: str, other: str) -> None:
    content = scene.crashes.holding(other, "somebody", 0)
    await scene.stocked.records.put(path, {**content, "attempt": other})


async def of_long_ago(scene: Scene, path: str, _: str) -> None:
    await scene.stocked.records.put(path, scene.crashes.holding(path, "somebody", 0))
    scene.clock.at += CLOCK_SKEW_S + 1


async def not_finite(scene: Scene, path: str, _: str) -> None:
    seal = scene.crashes.holding(path, "forged", 0)["seal"]
    await scene.stocked.records.put(path, {"holder": "forged", "beat": math.inf, "at": scene.clock.at, "seal": seal})


async def a_crash_that_is_not_finite(scene: Scene, path: str, _: str) -> None:
    seal = scene.crashes.holding(path, "forged", 0)["seal"]
    problem = {"code": "compile.crashed", "status": math.nan}
    await scene.stocked.records.put(path, {"problem": problem, "at": scene.clock.at, "seal": seal})


FORGERIES = (unsigned, by_another_key, of_another_place, of_long_ago, not_finite, a_crash_that_is_not_finite)


@pytest.mark.parametrize("forge", FORGERIES)
async def test_a_place_that_nobody_with_a_key_holds_is_free(
    scene: Scene, forge: Callable[[Scene, str, str], Awaitable[None]]
) -> None:
    for _ in range(2):
        await begun(Attempts(scene.crashes, "key"))
    first, second = scene.places
    await forge(scene, first, second)
    attempt = await begun(Attempts(scene.crashes, "key"))
    assert attempt.number == 1
    assert "forged" not in (await scene.record(first))["holder"]


async def test_what_the_dead_have_said_keeps_no_place(scene: Scene) -> None:
    for _ in range(2):
        await begun(Attempts(scene.crashes, "key"))
    path = scene.places[0]
    said = [scene.crashes.holding(path, holder, beat) for beat in range(3) for holder in ("one", "two")]
    waiting = Attempts(scene.crashes, "key")
    for content in said:
        await scene.stocked.records.put(path, content)
        assert await waiting.begin() is None, "each of these is new"
    for content in (*said, *said):
        scene.clock.at += LEASE_S / 8
        await scene.stocked.records.put(path, content)
        found = await waiting.begin()
        if isinstance(found, Attempt):
            break
    else:
        pytest.fail("the dead have kept the place")
