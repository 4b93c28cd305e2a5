"""What is done again and again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from service.process import periodic
from tensorkiln.errors import UnavailableError
from tests.simulation.alone import alone, anyio_backend

__all__ = ["anyio_backend"]


async def seen(count: int, failing: dict[int, Exception], *, every_s: float, at_once: bool) -> list[float]:
    """When each of so many rounds began, in seconds since the first could; those in `failing` raise."""
    alone()
    begun: list[float] = []
    enough = asyncio.Event()
    start = asyncio.get_running_loop().time()

    async def once() -> None:
        begun.append(asyncio.get_running_loop().time() - start)
        if len(begun) == count:
            enough.set()
        if len(begun) - 1 in failing:
            raise failing[len(begun) - 1]

    task = asyncio.create_task(periodic.periodically("count", every_s, once, at_once=at_once))
    await enough.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return begun


@pytest.mark.parametrize("at_once", [False, True])
async def test_the_first_round_is_after_its_time_or_at_once(at_once: bool) -> None:
    first, second = await seen(2, {}, every_s=60.0, at_once=at_once)
    assert (first < 60.0) is at_once
    assert second - first >= 60.0


async def test_a_round_that_fails_is_said_and_is_not_the_last_nor_soon_done_again() -> None:
    with capture_logs() as said:
        begun = await seen(3, {0: UnavailableError("gone"), 1: KeyError("x")}, every_s=0.01, at_once=True)
    assert [each.get("reason") for each in said] == ["gone", None]
    assert isinstance(said[1]["exc_info"], KeyError)
    assert all(later - earlier >= periodic._PAUSE_S for earlier, later in pairwise(begun))  # pyright: ignore[reportPrivateUsage]
