"""Coded bytes to plain ones, a piece at a time, however much they would swell to."""

from __future__ import annotations

import zlib
from collections.abc import Generator
from typing import Final, Protocol

from tensorkiln.errors import LimitExceededError, RequestError

from .limits import MAX_FRAMES, MAX_WINDOW_BYTES
from .zstandard import Frame, read_frame, zstd

PIECE_BYTES: Final = 128 << 10
"""Plain bytes that are made at a time."""
_GZIP: Final = 31


class Stream(Protocol):
    """One coding. A RequestError of either method says that the bytes are not in it."""

    def feed(self, data: bytes) -> Generator[bytes]:
        """The plain bytes that `data` adds."""
        ...

    def finish(self) -> None:
        """All has been fed: RequestError unless that is an end."""
        ...


class GzipStream:
    """gzip (RFC 1952), in up to MAX_FRAMES members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._members = 1

    def feed(self, data: bytes) -> Generator[bytes]:
        """As the protocol has it."""
        while data:
            if self._member.eof:
                self._members = _counted(self._members)
                self._member = zlib.decompressobj(_GZIP)
            yield from self._pieces(data)
            data = self._member.unused_data

    def finish(self) -> None:
        """As the protocol has it."""
        if not self._member.eof:
            raise _cut_short("gzip")

    def _pieces(self, data: bytes) -> Generator[bytes]:
        try:
            while True:
                piece = self._member.decompress(data, PIECE_BYTES)
                if piece:
                    yield piece
                data = self._member.unconsumed_tail
                if self._member.eof or (not data and len(piece) < PIECE_BYTES):
                    return
        except zlib.error as error:
            raise RequestError(f"The body is not gzip: {error}.") from None


class ZstdStream:
    """zstd (RFC 8878), in up to MAX_FRAMES frames, none of which states more than `limit` bytes of content.

    No frame has a window of more than MAX_WINDOW_BYTES.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._frames = 0
        self._head = b""
        self._frame: zstd.ZstdDecompressor | None = None

    def feed(self, data: bytes) -> Generator[bytes]:
        """As the protocol has it."""
        while data:
            if self._frame is None:
                self._head += data
                if not self._begin():
                    return
                data, self._head = self._head, b""
            data = yield from self._pieces(data)

    def finish(self) -> None:
        """As the protocol has it."""
        if self._frame is not None or self._head or not self._frames:
            raise _cut_short("zstd")

    def _begin(self) -> bool:
        """Whether enough of a frame is there to know that it may be read."""
        try:
            frame = read_frame(self._head)
        except ValueError as error:
            raise RequestError(f"The body is not zstd: {error}.") from None
        if frame is None:
            return False
        self._check(frame)
        self._frames = _counted(self._frames)
        most: dict[int, int] = {zstd.DecompressionParameter.window_log_max: MAX_WINDOW_BYTES.bit_length() - 1}
        self._frame = zstd.ZstdDecompressor(options=most)
        return True

    def _check(self, frame: Frame) -> None:
        if frame.content is not None and frame.content > self._limit:
            raise LimitExceededError(
                f"The body is {frame.content} bytes once it is decoded; the limit is {self._limit}.",
                limit="body_bytes",
                maximum=self._limit,
                actual=frame.content,
            )
        if frame.window > MAX_WINDOW_BYTES:
            raise LimitExceededError(
                f"The body is coded with a window of {frame.window} bytes; the limit is {MAX_WINDOW_BYTES}. "
                "Use a lower level, or no long-distance matching.",
                limit="body_window_bytes",
                maximum=MAX_WINDOW_BYTES,
                actual=frame.window,
            )

    def _pieces(self, data: bytes) -> Generator[bytes, None, bytes]:
        """The plain bytes of the frame; returns what comes after it."""
        frame = self._frame
        assert frame is not None
        try:
            while True:
                piece = frame.decompress(data, PIECE_BYTES)
                if piece:
                    yield piece
                if frame.eof:
                    self._frame = None
                    return frame.unused_data
                if frame.needs_input:
                    return b""
                data = b""
        except zstd.ZstdError as error:
            raise RequestError(f"The body is not zstd: {error}.") from None


def _counted(frames: int) -> int:
    if frames >= MAX_FRAMES:
        raise LimitExceededError(
            f"The body is coded in more than {MAX_FRAMES} frames; code it in one.",
            limit="body_frames",
            maximum=MAX_FRAMES,
            actual=frames + 1,
        )
    return frames + 1


def _cut_short(coding: str) -> RequestError:
    return RequestError(f"The body ends in the middle of its {coding}.")
