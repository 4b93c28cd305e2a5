"""Requests are let in a few at a time, tenants in turn, before anything is done about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from .connections import MOST
from .fairness.lane import Bounds, FairLane
from .fairness.queue import Share
from .identity.caller import caller

PER_PASS: Final = 2
"""A pass of the event loop does all that is ready before it looks at what has come: so many begin in each.

What is stored is answered within one, in half a millisecond; a compile takes some forty.
"""
_COST_S: Final = 0.0005


class Admission:
    """Lets PER_PASS requests begin in a pass of the event loop. `weight` gives that of a tenant; `public` paths pass.

    However many connections one tenant asks at, the requests of another go on in every pass.
    """

    def __init__(self, app: ASGIApp, weight: Callable[[str], float], public: Collection[str]) -> None:
        self._app = app
        self._weight = weight
        self._public = public
        self._lane = FairLane(Bounds(PER_PASS, MOST))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["path"] not in self._public:
            tenant = caller().tenant
            async with self._lane.admit(Share(tenant, self._weight(tenant)), _COST_S):
                await asyncio.sleep(0)
        await self._app(scope, receive, send)
