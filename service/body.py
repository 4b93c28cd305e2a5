"""The body of a request: JSON by its content type, bounded in size, hashed while it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.coding.decode import codings_of, decoded
from tensorkiln.errors import LimitExceededError, RequestError, TensorkilnError
from tensorkiln.limits import MAX_BODY_BYTES

# A client that is still sending reads no answer: what it sends beyond the limit is thrown away for a while.
_DISCARD_BYTES: Final = 64 << 20
_DISCARD_S: Final = 10.0


class MediaTypeError(RequestError):
    """The body is not declared to be JSON. A browser cannot send JSON to another origin without being allowed to."""

    status = 415


@dataclass(frozen=True, slots=True)
class Body:
    """A body and its SHA-256."""

    content: bytes
    digest: str


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> Body:
    """The body of `request`, decoded. LimitExceededError above `limit` bytes.

    MediaTypeError unless it is JSON, CodingError when it is in a content coding that the service does not read.
    """
    _check_media_type(request)
    try:
        return await _read(request, limit)
    except ClientDisconnect:
        raise RequestError("The client left before the end of the body.") from None


async def _read(request: Request, limit: int) -> Body:
    stated = request.headers.get("content-length")
    if stated is not None and stated.isdigit() and int(stated) > limit:
        if request.headers.get("expect", "").lower() != "100-continue":
            await _discard(request.stream())
        raise _too_long(int(stated), limit)
    content, digest = bytearray(), sha256()
    chunks = request.stream()
    try:
        codings = codings_of(request.headers.get("content-encoding", ""))
        async for chunk in decoded(chunks, codings, limit):
            content += chunk
            if len(content) > limit:
                raise _too_long(len(content), limit)
            if not codings:
                digest.update(chunk)
    except TensorkilnError:
        await _discard(chunks)
        raise
    if codings:
        # What is coded arrives in little time, and most of what is refused swells in even less.
        await asyncio.to_thread(digest.update, content)
    return Body(bytes(content), digest.hexdigest())


def _check_media_type(request: Request) -> None:
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    if kind.strip().lower() != "application/json":
        raise MediaTypeError("The body must be sent with Content-Type: application/json.")
    charset = parameters.strip().lower().replace('"', "")
    if charset.startswith("charset=") and charset != "charset=utf-8":
        raise MediaTypeError("The body must be UTF-8.")


async def _discard(chunks: AsyncIterator[bytes]) -> None:
    left = _DISCARD_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_S):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return


def _too_long(actual: int, limit: int) -> LimitExceededError:
    return LimitExceededError(
        f"The body is {actual} bytes or more; the limit is {limit}. Large tables are inputs, not constants.",
        limit="body_bytes",
        maximum=limit,
        actual=actual,
    )
