"""Work for a client goes on while the client waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from fastapi import Request

from tensorkiln.errors import RequestError, UnavailableError

LINGER_S: Final = 0.5
"""A client that lost its connection comes back within this, and finds its compile under way."""

T = TypeVar("T")


class ClientLeftError(RequestError):
    """The client closed its connection before its answer was there. Nobody reads this but the log and the figures."""

    status = 499


async def until_disconnect(request: Request, work: Coroutine[Any, Any, T], ending: asyncio.Event) -> T:
    """The result of `work`, which is cancelled when the client leaves: ClientLeftError.

    It is cancelled as well when the service is `ending`: UnavailableError, so that the client asks the next one.
    The body of `request` has been read. What others wait for as well is not cancelled with it; see `Flights`.
    """
    working = asyncio.create_task(work)
    others = {asyncio.create_task(_left(request)), asyncio.create_task(ending.wait())}
    try:
        await asyncio.wait({working, *others}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        if ending.is_set():
            raise UnavailableError("The service is shutting down, and the answer is not there yet; send it again.")
        raise ClientLeftError("The client left before the answer was there.")
    finally:
        for other in others:
            other.cancel()
        working.cancel()
        # Its end is waited for, however it comes: what it holds is free when the request is over.
        await asyncio.gather(working, return_exceptions=True)
        # Its error has this frame in its traceback: it would hold itself, and what the work held.
        del working


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue
    await asyncio.sleep(LINGER_S)
