"""Requests are let in a few at a time, tenants in turn, before anything is done about them."""

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
"""A pass of the event loop does all that is ready before it looks at what has come: so many begin in each.

What is stored is answered within one, in half a millisecond; a compile takes some forty.
"""


class Admission:
    """Lets PER_PASS requests begin in a pass of the event loop. `tenant` gives what one has; `public` paths pass.

    However many connections one tenant asks at, the requests of another go on in every pass.
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
