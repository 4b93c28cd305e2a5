"""Admission control: start a few requests per pass of the event loop, tenants in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from service.fairness.lane import Bounds, FairLane
from service.fairness.turns import Turns
from service.identity.register import TenantRecord

from .connections import MOST

PER_PASS: Final = 2
"""Requests that may start in one pass of the event loop, which runs all ready callbacks before it polls for I/O.

A stored program is answered within one pass, in half a millisecond; a compile takes some forty passes.
"""


class Admission:
    """Starts PER_PASS requests per pass of the event loop, except for `public` paths. `tenant` returns a record.

    However many connections one tenant uses, the requests of another proceed in every pass.
    """

    def __init__(self, app: ASGIApp, tenant: Callable[[str], TenantRecord], public: Collection[str]) -> None:
        self._app = app
        self._public = public
        self._turns = Turns(FairLane(Bounds(PER_PASS, MOST)), tenant, work=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["path"] not in self._public:
            async with self._turns.turn(0):
                await asyncio.sleep(0)
        await self._app(scope, receive, send)
