"""Streams of events begin a few at a time, and all else is answered between them."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

AT_ONCE: Final = 8
"""A stream takes some milliseconds to begin, and the loop does what is begun before what comes later."""


class Openings:
    """Lets no more than AT_ONCE streams be on their way to their first event."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._places = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or not scope["path"].endswith("/events"):
            await self._app(scope, receive, send)
            return
        await self._places.acquire()
        with ExitStack() as place:
            place.callback(self._places.release)

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.body":
                    place.close()
                await send(message)

            await self._app(scope, receive, sending)
