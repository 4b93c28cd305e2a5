"""Bodies of requests, decoded while they arrive, within true bounds: what is not wanted is never made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tensorkiln.errors import LimitExceededError, RequestError

from .limits import FREE_BYTES, MAX_CODINGS, MAX_RATIO
from .streams import GzipStream, Stream, ZstdStream

_STREAMS: Final[Mapping[str, Callable[[int], Stream]]] = {
    "zstd": ZstdStream,
    "gzip": lambda _: GzipStream(),
    "x-gzip": lambda _: GzipStream(),
}
CODINGS: Final = ("zstd", "gzip")
"""What bodies may be sent in."""
_FED_BYTES: Final = 4 << 10


@dataclass(slots=True)
class _Sent:
    """The bytes of a body that have arrived, before any coding is undone."""

    bytes: int = 0


class CodingError(RequestError):
    """The body is in a coding that the service does not read."""

    status = 415


def codings_of(header: str) -> tuple[str, ...]:
    """The codings that Content-Encoding names, in the order in which they were applied. CodingError for another."""
    named = [each.strip().lower() for each in header.split(",")]
    found = tuple(each for each in named if each not in ("", "identity"))
    unknown = [each for each in found if each not in _STREAMS]
    if unknown or len(found) > MAX_CODINGS:
        what = f"Content-Encoding {unknown[0][:64]!r}" if unknown else f"{len(found)} content codings"
        raise CodingError(f"The body has {what}; send it in one of {', '.join(CODINGS)}, or without.")
    return found


def decoded(chunks: AsyncIterator[bytes], codings: tuple[str, ...], limit: int) -> AsyncIterator[bytes]:
    """The plain bytes of `chunks`. They are at most `limit` at every stage, and no more than MAX_RATIO times `chunks`.

    LimitExceededError beyond that, RequestError for bytes that are not in their coding.
    """
    if not codings:
        return chunks
    # Every stage is held to what was sent: if each were to what it is fed, two would swell to the square of the ratio.
    sent = _Sent()
    chunks = _counted(chunks, sent)
    for coding in reversed(codings):
        chunks = _decoded(chunks, _STREAMS[coding](limit), sent, limit)
    return chunks


async def _counted(chunks: AsyncIterator[bytes], sent: _Sent) -> AsyncGenerator[bytes]:
    async for chunk in chunks:
        for begin in range(0, len(chunk), _FED_BYTES):
            fed = chunk[begin : begin + _FED_BYTES]
            sent.bytes += len(fed)
            yield fed


async def _decoded(chunks: AsyncIterator[bytes], stream: Stream, sent: _Sent, limit: int) -> AsyncGenerator[bytes]:
    taken = made = 0
    async for chunk in chunks:
        for begin in range(0, len(chunk), _FED_BYTES):
            fed = chunk[begin : begin + _FED_BYTES]
            taken += len(fed)
            for piece in stream.feed(fed):
                made += len(piece)
                _check(sent, taken, made, limit)
                yield piece
                await asyncio.sleep(0)  # others are served while a large body is decoded
        _check(sent, taken, made, limit)
    stream.finish()


def _check(sent: _Sent, taken: int, made: int, limit: int) -> None:
    if max(taken, made) > limit:
        raise LimitExceededError(
            f"The body is {max(taken, made)} bytes or more; the limit is {limit}.",
            limit="body_bytes",
            maximum=limit,
            actual=max(taken, made),
        )
    if made > FREE_BYTES and made > MAX_RATIO * sent.bytes:
        raise LimitExceededError(
            f"The body decompresses to at least {made // sent.bytes} times its size; the limit is {MAX_RATIO}. "
            "Send it without Content-Encoding.",
            limit="body_ratio",
            maximum=MAX_RATIO,
            actual=made // sent.bytes,
        )
