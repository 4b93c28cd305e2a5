"""Cancel the work for a client that disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from fastapi import Request

from tensorkiln.errors import RequestError, UnavailableError

LINGER_S: Final = 0.5
"""Seconds within which a client that lost its connection can come back and find its compile still running."""

T = TypeVar("T")


class ClientLeftError(RequestError):
    """The client closed its connection before its answer was there. Only the log and the metrics show this."""

    status = 499


async def until_disconnect(request: Request, work: Coroutine[Any, Any, T], ending: asyncio.Event) -> T:
    """Return the result of `work`; cancel it and raise ClientLeftError when the client disconnects.

    When the service is `ending`, cancel it and raise UnavailableError, so that the client tries another one. The body
    of `request` must have been read. Work that other callers wait for goes on; see `Flights`.
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
        # Wait for its end, so that its resources are free when the request is over.
        await asyncio.gather(working, return_exceptions=True)
        # The traceback of its error refers to this frame: a cycle that would keep the work's memory.
        del working


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue
    await asyncio.sleep(LINGER_S)
