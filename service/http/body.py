"""The body of a request: JSON by its content type, bounded in size and time, hashed while it arrives.

And the end of work whose client disconnects.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from hashlib import sha256
from io import BytesIO
from typing import Any, Final, TypeVar

from fastapi import Request

from service.wire.body import Body
from tensorkiln.errors import RequestError, TensorkilnError, UnavailableError
from tensorkiln.limits import MAX_BODY_BYTES

from .coded_bodies import coding_of, decoded, too_long
from .middlewares import held_by

LEAST_RATE: Final = 64 << 10
"""Bytes per second at which a body must arrive after its first KILN_ARRIVAL_S seconds."""
LINGER_S: Final = 0.5
"""Seconds within which a client that lost its connection can come back and find its compile still running."""
T = TypeVar("T")


class MediaTypeError(RequestError):
    """The body is not declared to be JSON. A browser cannot send JSON to another origin without being allowed to."""

    status = 415


class SlowBodyError(RequestError):
    """The body did not arrive in time."""

    status = 408


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> Body:
    """Read and decode the body of `request`; its bytes count as held until the answer.

    LimitExceededError above `limit` bytes, MediaTypeError, CodingError, SlowBodyError; the errors of `Held.add` and of
    `MemoryLimit.require`; UnavailableError when the service shuts down first.
    """
    kind, *parameters = (part.strip().lower() for part in request.headers.get("content-type", "").split(";"))
    if kind != "application/json":
        raise MediaTypeError("The body must be sent with Content-Type: application/json.")
    if any(part.startswith("charset=") and part.replace('"', "") != "charset=utf-8" for part in parameters):
        raise MediaTypeError("The body must be UTF-8.")
    try:
        async with request.app.state.engine.ending.before():
            return await _read(request, limit)
    except TimeoutError:
        raise UnavailableError("The service is shutting down, and the body is not there yet; send it again.") from None


async def _read(request: Request, limit: int) -> Body:
    stated = request.headers.get("content-length")
    if stated is not None and stated.isdigit() and int(stated) > limit:
        raise too_long(int(stated), limit)
    # getvalue() returns its bytes without a copy.
    arrived, digest, held = BytesIO(), sha256(), held_by(request.scope)
    chunks = _in_time(request, request.app.state.settings.arrival_s)
    try:
        coding = coding_of(request.headers.get("content-encoding", ""))
        async for chunk in chunks if coding is None else decoded(chunks, coding, limit):
            if arrived.tell() + len(chunk) > limit:
                raise too_long(arrived.tell() + len(chunk), limit)
            held.add(len(chunk))
            request.app.state.memory_limit.require(arrived.tell() + len(chunk))
            arrived.write(chunk)
            if coding is None:
                digest.update(chunk)
    except TensorkilnError:
        # The traceback of the error keeps this frame alive until it is answered.
        arrived.close()
        held.give_back()
        raise
    content = arrived.getvalue()
    if coding is not None:
        # A coded body arrives quickly and is hashed off the event loop; one refused above needs no hash.
        await asyncio.to_thread(digest.update, content)
    return Body(content, digest.hexdigest())


async def _in_time(request: Request, seconds: float) -> AsyncIterator[bytes]:
    arrived, begin, has_more = 0, time.monotonic(), True
    while has_more:
        allowed = seconds + arrived / LEAST_RATE
        try:
            async with asyncio.timeout(begin + allowed - time.monotonic()):
                message = await request.receive()
        except TimeoutError:
            raise SlowBodyError(
                f"{arrived} bytes of the body arrived within {allowed:.0f} s, and then no more; send it in one go.",
                details={"arrival_s": seconds, "least_rate": LEAST_RATE, "arrived": arrived},
            ) from None
        if message["type"] == "http.disconnect":
            raise RequestError("The client left before the end of the body.")
        chunk, has_more = message.get("body", b""), message.get("more_body", False)
        arrived += len(chunk)
        yield chunk


class ClientLeftError(RequestError):
    """The client closed its connection before its answer was there. Only the log and the metrics show this."""

    status = 499


async def until_disconnect(request: Request, work: Coroutine[Any, Any, T], ending: asyncio.Event) -> T:
    """The result of `work`, for a `request` whose body was read. Work that other callers wait for goes on.

    Cancels it and raises ClientLeftError when the client disconnects, UnavailableError when the service is `ending`.
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
