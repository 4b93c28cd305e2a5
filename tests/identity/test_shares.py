"""What all share: who waits, who goes first, what a tenant leaves to others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from service.fairness.shares import Shares
from tensorkiln.errors import RateLimitedError, UnavailableError
from tests.settled import settled


class Rooms:
    """Holders of `shares`, by name."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self.inside: list[str] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leave: dict[str, asyncio.Event] = {}

    async def come(self, name: str, tenant: str, count: int) -> None:
        self._leave[name] = asyncio.Event()

        async def stay() -> None:
            async with self.shares.room(tenant, count):
                self.inside.append(name)
                try:
                    await self._leave[name].wait()
                finally:
                    self.inside.remove(name)

        self._tasks[name] = asyncio.create_task(stay())
        await settled()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await self._tasks[name]
        await settled()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])
        await settled()


def with_rooms(most: int, test: Callable[[Rooms], Awaitable[None]]) -> None:
    async def run() -> None:
        rooms = Rooms(Shares(most))
        await test(rooms)
        assert rooms.shares.held == 0

    asyncio.run(run())


def test_requests_without_room_wait_in_order() -> None:
    async def test(rooms: Rooms) -> None:
        await rooms.come("first", "", 70)
        await rooms.come("large", "", 60)
        await rooms.come("small", "", 10)  # there would be room, which the one before it will want
        assert rooms.inside == ["first"]
        await rooms.leave("first")
        assert rooms.inside == ["large", "small"]
        await rooms.leave("large")
        await rooms.leave("small")

    with_rooms(100, test)


def test_a_tenant_over_its_share_blocks_no_other() -> None:
    async def test(rooms: Rooms) -> None:
        await rooms.come("a1", "a", 70)
        await rooms.come("a2", "a", 30)  # a tenant has three times what is free, at most
        await rooms.come("b1", "b", 20)
        assert rooms.inside == ["a1", "b1"]
        await rooms.leave("a1")
        assert rooms.inside == ["b1", "a2"]
        await rooms.leave("a2")
        await rooms.leave("b1")

    with_rooms(100, test)


def test_a_request_larger_than_the_share_runs_alone() -> None:
    async def test(rooms: Rooms) -> None:
        await rooms.come("one", "a", 10)
        await rooms.come("huge", "a", 1000)
        await rooms.come("two", "b", 10)
        assert rooms.inside == ["one"]
        await rooms.leave("one")
        assert rooms.inside == ["huge"]
        await rooms.leave("huge")
        assert rooms.inside == ["two"]
        await rooms.leave("two")

    with_rooms(100, test)


@pytest.mark.parametrize("waits", [False, True])
def test_a_cancelled_request_releases_its_share(waits: bool) -> None:
    async def test(rooms: Rooms) -> None:
        await rooms.come("one", "", 70)
        await rooms.come("two", "", 60)
        await rooms.come("three", "", 10)
        await rooms.give_up("two" if waits else "one")
        assert rooms.inside == (["one", "three"] if waits else ["two", "three"])
        for name in tuple(rooms.inside):
            await rooms.leave(name)

    with_rooms(100, test)


def test_a_tenant_that_holds_nothing_may_be_given_more_than_its_share() -> None:
    shares = Shares(100, "things", "things that there are")
    with pytest.raises(RateLimitedError) as caught:
        shares.take("a", 1000)
    assert caught.value.details == {"limit": "things", "maximum": 100, "actual": 0, "retry_after_s": 1}
    shares.take("a", 1000, one_at_least=True)
    with pytest.raises(RateLimitedError, match="Your tenant has 1000 of 100 things that there are"):
        shares.take("a", 1, one_at_least=True)
    shares.give_back("a", 1000)
    assert shares.held == 0


def test_without_tenants_one_caller_may_take_the_whole_share() -> None:
    shares = Shares(100, "things", "things that there are")
    shares.take("", 100)
    with pytest.raises(UnavailableError, match="100 of 100 things") as caught:
        shares.take("", 1)
    assert caught.value.details == {"things": 100, "maximum": 100}
