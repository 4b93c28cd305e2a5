"""Work that is joined: one result for all who wait, its news for each, and an end when nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from service.engine.flights import Flights
from tensorkiln.errors import DiagnosticError


async def test_all_who_join_get_the_result_and_all_of_the_news() -> None:
    flights: Flights[int, str] = Flights()
    gate = asyncio.Event()
    started = 0

    async def work(tell: Callable[[str], None]) -> int:
        nonlocal started
        started += 1
        tell("first")
        await gate.wait()
        tell("second")
        return 7

    early, late = list[str](), list[str]()
    one = asyncio.create_task(flights.join("key", work, early.append))
    await asyncio.sleep(0.01)
    assert early == ["first"]
    two = asyncio.create_task(flights.join("key", work, late.append))
    await asyncio.sleep(0.01)
    gate.set()
    assert await asyncio.gather(one, two) == [7, 7]
    assert early == late == ["first", "second"]
    assert started == 1
    assert await flights.join("key", work) == 7
    assert started == 2


async def test_work_goes_on_while_anybody_waits_and_is_cancelled_with_the_last() -> None:
    flights: Flights[int, str] = Flights()
    cancelled = asyncio.Event()

    async def work(tell: Callable[[str], None]) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError("nobody lets it go on")

    one, two = (asyncio.create_task(flights.join("key", work)) for _ in range(2))
    await asyncio.sleep(0.01)
    one.cancel()
    await asyncio.wait([one])
    assert not cancelled.is_set()
    two.cancel()
    # A new request gets work of its own, not the work that is being cancelled.
    await asyncio.wait([two])

    async def other(tell: Callable[[str], None]) -> int:
        return 1

    assert await flights.join("key", other) == 1
    await cancelled.wait()


async def test_an_error_reaches_everybody_and_the_next_who_comes_starts_anew() -> None:
    flights: Flights[int, str] = Flights()

    async def fail(tell: Callable[[str], None]) -> int:
        await asyncio.sleep(0)
        raise DiagnosticError("no")

    results = await asyncio.gather(*(flights.join("key", fail) for _ in range(2)), return_exceptions=True)
    assert [type(result) for result in results] == [DiagnosticError] * 2
    with pytest.raises(DiagnosticError):
        await flights.join("key", fail)
