"""Decode request bodies in a content coding while they arrive; output beyond a limit is never produced."""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from functools import partial
from typing import Final, TypeAlias

from tensorkiln.errors import LimitExceededError, RequestError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["CODINGS", "CodingError", "coding_of", "decoded", "too_long", "zstd"]

CODINGS: Final = ("zstd", "gzip")
"""Content codings that bodies may be sent in."""
MAX_RATIO: Final = 200
"""Most decoded bytes per byte sent, checked beyond FREE_BYTES. Graphs reach about 50."""
FREE_BYTES: Final = 1 << 20
MAX_WINDOW_BYTES: Final = 8 << 20
"""The largest zstd window that RFC 9659 allows."""
MAX_FRAMES: Final = 64
PIECE_BYTES: Final = 128 << 10
"""Decoded bytes produced at a time."""
_FED_BYTES: Final = 4 << 10
_GZIP: Final = 31
_TOO_WIDE: Final = "too much memory"
"""Part of the message of zstd about a window above the maximum."""


class CodingError(RequestError):
    """The body is in a coding that the service does not read."""

    status = 415


class _GzipMember:
    """Decoder of one gzip member, with the methods of `zstd.ZstdDecompressor`."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP)
        self.needs_input, self.eof, self.unused_data = True, False, b""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        inner = self._inner
        piece = inner.decompress(inner.unconsumed_tail + data, max_length)
        self.needs_input = not inner.unconsumed_tail and len(piece) < max_length
        self.eof, self.unused_data = inner.eof, inner.unused_data
        return piece


_Frame: TypeAlias = zstd.ZstdDecompressor | _GzipMember
"""Decoder of one zstd frame or gzip member."""


_MOST: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: MAX_WINDOW_BYTES.bit_length() - 1}
_FRAMES: Final[dict[str, Callable[[], _Frame]]] = {
    "zstd": partial(zstd.ZstdDecompressor, options=_MOST),
    "gzip": _GzipMember,
    "x-gzip": _GzipMember,
}


def coding_of(header: str) -> str | None:
    """The coding that Content-Encoding names; None for none. CodingError for an unknown one, or several."""
    found = [each for each in (part.strip().lower() for part in header.split(",")) if each not in ("", "identity")]
    if len(found) > 1 or not _FRAMES.keys() >= {*found}:
        what = f"Content-Encoding {found[0][:64]!r}" if len(found) == 1 else f"{len(found)} content codings"
        raise CodingError(f"The body has {what}; send it in one of {', '.join(CODINGS)}, or without.")
    return found[0] if found else None


async def decoded(chunks: AsyncIterator[bytes], coding: str, limit: int) -> AsyncGenerator[bytes]:
    """Decode `chunks` into `limit` bytes, and MAX_RATIO times those sent, at most. LimitExceededError, RequestError."""
    frame: _Frame | None = None
    count = sent = made = 0
    async for chunk in chunks:
        for begin in range(0, len(chunk), _FED_BYTES):
            fed = chunk[begin : begin + _FED_BYTES]
            sent += len(fed)
            while fed:
                if frame is None:
                    if (count := count + 1) > MAX_FRAMES:
                        raise LimitExceededError(
                            f"The body is coded in more than {MAX_FRAMES} frames; code it in one.",
                            limit="body_frames",
                            maximum=MAX_FRAMES,
                            actual=count,
                        )
                    frame = _FRAMES[coding]()
                for piece in _pieces(frame, coding, fed):
                    made += len(piece)
                    _check(sent, made, limit)
                    yield piece
                    await asyncio.sleep(0)  # others are served while a large body is decoded
                fed, frame = frame.unused_data, None if frame.eof else frame
        _check(sent, made, limit)
    if frame is not None or not count:
        raise RequestError(f"The {coding} data of the body is empty or incomplete; send it again.")


def _pieces(frame: _Frame, coding: str, data: bytes) -> Generator[bytes]:
    try:
        while True:
            piece = frame.decompress(data, PIECE_BYTES)
            if piece:
                yield piece
            if frame.eof or frame.needs_input:
                return
            data = b""
    except (zlib.error, zstd.ZstdError) as error:
        if _TOO_WIDE in str(error):
            raise LimitExceededError(
                f"The body is coded with a window of more than {MAX_WINDOW_BYTES} bytes, the limit. "
                "Use a lower level, or no long-distance matching.",
                limit="body_window_bytes",
                maximum=MAX_WINDOW_BYTES,
                actual=MAX_WINDOW_BYTES + 1,
            ) from None
        raise RequestError(f"The body is not {coding}: {error}.") from None


def too_long(actual: int, limit: int) -> LimitExceededError:
    """The error of a body of at least `actual` bytes, coded or decoded."""
    return LimitExceededError(
        f"The body is {actual} bytes or more; the limit is {limit}. Large tables are inputs, not constants.",
        limit="body_bytes",
        maximum=limit,
        actual=actual,
    )


def _check(sent: int, made: int, limit: int) -> None:
    if max(sent, made) > limit:
        raise too_long(max(sent, made), limit)
    if made > FREE_BYTES and made > MAX_RATIO * sent:
        raise LimitExceededError(
            f"The body decompresses to at least {made // sent} times its size; the limit is {MAX_RATIO}. "
            "Send it without Content-Encoding.",
            limit="body_ratio",
            maximum=MAX_RATIO,
            actual=made // sent,
        )
