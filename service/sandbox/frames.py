"""The protocol between a task and the service: frames of one kind byte, a length, and that many bytes.

A message is any number of parts (a name and bytes) followed by one header (a JSON object), which ends it.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, Final, cast

PREFIX: Final = struct.Struct(">cI")
_NAME: Final = struct.Struct(">H")

_WORTH_A_CALL: Final = 32 << 10
_MOST_OF_A_CALL: Final = 256 << 10

STAGE: Final = b"S"
"""A stage of the task begins; the payload is its name."""
PART: Final = b"P"
"""A name and bytes that belong to the header that follows."""
DONE: Final = b"D"
"""The header of a complete message."""
FAILED: Final = b"F"
"""A problem document: the task ended with a typed error."""

KINDS: Final = frozenset({STAGE, PART, DONE, FAILED})

MAX_HEADER_BYTES: Final = 4 << 20
"""The longest valid header is that of a graph of 50 000 constants, with a digest for each."""
MAX_HEADER_VALUES: Final = 1 << 16
"""Most commas and opening brackets in a header: three bytes of JSON may take seventy of memory."""
_HEADERS: Final = frozenset({DONE, FAILED})
_SEPARATORS: Final = (b",", b"[", b"{")

_MAX_PROBLEM_BYTES: Final = 64 << 10
_TEXT: Final = 1000
_ENTRIES: Final = 16


class FrameError(Exception):
    """The bytes are not frames of this protocol."""


@dataclass(frozen=True, slots=True)
class Message:
    """A JSON object and the named bytes that go with it."""

    header: Mapping[str, Any] = field(default_factory=dict[str, Any])
    parts: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


def encode(kind: bytes, payload: bytes = b"") -> bytes:
    return PREFIX.pack(kind, len(payload)) + payload


def encode_json(kind: bytes, content: Mapping[str, Any]) -> bytes:
    """Encode a JSON object as one frame; a problem above _MAX_PROBLEM_BYTES has its texts and lists cut short."""
    payload = _json(content)
    if kind == FAILED and len(payload) > _MAX_PROBLEM_BYTES:
        payload = _json(_cut(content))
    return encode(kind, payload)


def encode_message(message: Message) -> Iterator[bytes]:
    """The frames of a message, in pieces that do not copy its parts."""
    for name, content in message.parts.items():
        yield from encode_part(name, content)
    yield encode_json(DONE, message.header)


def encode_part(name: str, content: bytes) -> tuple[bytes, bytes]:
    """One part, as its beginning and its bytes."""
    label = name.encode()
    return PREFIX.pack(PART, _NAME.size + len(label) + len(content)) + _NAME.pack(len(label)) + label, content


def gathered(pieces: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """Regroup pieces for fewer system calls and copies: join small ones, slice large ones without a copy."""
    small = bytearray()
    for piece in pieces:
        if len(small) + len(piece) < _WORTH_A_CALL:
            small += piece
            continue
        if small:
            yield bytes(small)
            small.clear()
        whole = memoryview(piece)
        for begin in range(0, len(whole), _MOST_OF_A_CALL):
            yield whole[begin : begin + _MOST_OF_A_CALL]
    if small:
        yield bytes(small)


def decode_prefix(prefix: bytes) -> tuple[bytes, int]:
    """Kind and length of a frame; FrameError for a kind that does not exist, and for a header that is too long."""
    kind, length = PREFIX.unpack(prefix)
    if kind not in KINDS:
        raise FrameError(f"no frame begins with {prefix!r}")
    if kind in _HEADERS and length > MAX_HEADER_BYTES:
        raise FrameError(f"a header has {length} bytes; the limit is {MAX_HEADER_BYTES}")
    return kind, length


def decode_part(payload: bytes) -> tuple[str, bytes]:
    """Name and bytes of a part."""
    if len(payload) < _NAME.size:
        raise FrameError("a part is shorter than the length of its name")
    (length,) = _NAME.unpack_from(payload)
    end = _NAME.size + length
    if len(payload) < end:
        raise FrameError("a part is shorter than its name")
    return decode_text(payload[_NAME.size : end]), payload[end:]


def decode_text(payload: bytes) -> str:
    """Decode UTF-8; FrameError when it is invalid."""
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise FrameError(str(error)) from None


def decode_json(payload: bytes) -> dict[str, Any]:
    """Decode a JSON object; FrameError when it is not one or has too many values."""
    values = sum(payload.count(separator) for separator in _SEPARATORS)
    if values > MAX_HEADER_VALUES:
        raise FrameError(f"a header has some {values} values; the limit is {MAX_HEADER_VALUES}")
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise FrameError(str(error)) from None
    if not isinstance(content, dict):
        raise FrameError("a header is not a JSON object")
    return content


def receive_message(channel: socket.socket) -> Message:
    """The only message of a blocking socket; FrameError when the peer closes before its end."""
    parts: dict[str, bytes] = {}
    with channel.makefile("rb") as stream:
        while True:
            kind, length = decode_prefix(_read(stream, PREFIX.size))
            payload = _read(stream, length)
            if kind == PART:
                name, content = decode_part(payload)
                parts[name] = content
            elif kind == DONE:
                return Message(decode_json(payload), parts)
            else:
                raise FrameError(f"a request has a frame of kind {kind!r}; only {PART!r} and {DONE!r} belong in it")


def _read(stream: BinaryIO, length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise FrameError("the peer closed the connection inside a message")
    return content


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT else value[:_TEXT] + "…"
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value).items()
        return {_cut(name): _cut(entry) for name, entry in islice(entries, _ENTRIES)}
    if isinstance(value, list | tuple):
        return [_cut(entry) for entry in cast("Sequence[Any]", value)[:_ENTRIES]]
    return value
