"""However many requests of one tenant wait, a few begin in a pass of the event loop, and another tenant is next."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from starlette.types import Message, Receive, Scope, Send

from service.http.guard import PER_PASS, Admission
from service.identity.caller import LOCAL, Caller, acting_as
from service.identity.register import TenantRecord

FLOOD = 40 * PER_PASS
PUBLIC = "/healthz"


class Begun:
    """Notes who begins in which pass of the loop."""

    def __init__(self) -> None:
        self.at: list[tuple[int, str, str]] = []
        self.passes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.at.append((self.passes, scope["tenant"], scope["path"]))

    async def count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.passes += 1


async def nothing() -> Message:
    raise AssertionError


async def unheard(_: Message) -> None:
    raise AssertionError


def admitted(flood: int, *others: tuple[str, str]) -> Begun:
    """What begins when a tenant asks for very much, and then `others` ask, each a tenant and a path."""
    begun = Begun()
    app = Admission(begun, lambda _: TenantRecord(), {PUBLIC})

    def asked(who: Caller, path: str) -> asyncio.Task[None]:
        with acting_as(who):
            return asyncio.create_task(app({"type": "http", "path": path, "tenant": who.tenant}, nothing, unheard))

    async def run() -> None:
        counting = asyncio.create_task(begun.count())
        tasks = [asked(replace(LOCAL, tenant="flood"), "/compile") for _ in range(flood)]
        await asyncio.sleep(0)
        tasks += [asked(replace(LOCAL, tenant=tenant), path) for tenant, path in others]
        await asyncio.gather(*tasks)
        counting.cancel()

    asyncio.run(run())
    return begun


def test_few_requests_begin_in_a_pass() -> None:
    begun = admitted(FLOOD)
    assert len(begun.at) == FLOOD
    for number in range(begun.passes + 1):
        assert [each for each, *_ in begun.at].count(number) <= PER_PASS


def test_another_tenant_does_not_wait_for_a_flood() -> None:
    order = [tenant for _, tenant, _ in admitted(FLOOD, ("calm", "/compile")).at]
    assert order.index("calm") <= 4 * PER_PASS


def test_public_paths_wait_for_nobody() -> None:
    begun = admitted(FLOOD, *[("", PUBLIC)] * FLOOD)
    passes = {number for number, _, path in begun.at if path == PUBLIC}
    assert max(passes) <= 3


async def test_one_that_leaves_keeps_no_place() -> None:
    begun = Begun()
    app = Admission(begun, lambda _: TenantRecord(), ())
    scope = {"type": "http", "path": "/compile", "tenant": ""}
    with acting_as(LOCAL):
        tasks = [asyncio.create_task(app(scope, nothing, unheard)) for _ in range(FLOOD)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await app(scope, nothing, unheard)
    assert len(begun.at) == 1
