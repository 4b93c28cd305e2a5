"""Answers in zstd for those who take it. A coded answer is a representation of its own: another ETag, and no ranges."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from hashlib import sha256
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .negotiate import ZSTD, takes_zstd
from .zstandard import zstd

MIN_BYTES: Final = 1024
"""An answer below this is sent as it is."""
MAX_BYTES: Final = 64 << 20
"""And so is one above this: coding it takes as much memory again."""
UNCODED: Final = "kiln.uncoded_bytes"
"""How long an answer is that was coded, in the message that starts it."""
_LEVEL: Final = 3
# Coding this many bytes takes about as long as handing them to a thread.
_INLINE_BYTES: Final = 256 << 10
_TYPES: Final = ("application/json", "application/octet-stream", "text/plain", "text/html")
_MARKED: Final = re.compile(r'"([^"]*)-zstd"')
_CONDITIONS: Final = ("if-match", "if-none-match")
_WITH_BODY: Final = frozenset({200, 206, 304})


class Encode:
    """Codes the answers of `app` that come in one piece."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # One list, whether on one line or on several (RFC 9110, section 5.3); routes read a single line.
        stated = {name: ", ".join(headers.getlist(name)) for name in _CONDITIONS if name in headers}
        marked = [name for name, etags in stated.items() if _MARKED.search(etags)]
        answer = _Answer(send, headers, is_marked="if-none-match" in marked)
        if stated:
            changed = MutableHeaders(raw=list(scope["headers"]))
            for name, etags in stated.items():
                changed[name] = _MARKED.sub(r'"\1"', etags)
            scope["headers"] = changed.raw
        await self._app(scope, receive, answer.send)


class _Answer:
    """The answer to one request, on its way. `is_marked` says that the client has a coded copy already."""

    def __init__(self, send: Send, headers: Headers, *, is_marked: bool) -> None:
        self._send = send
        self._is_wanted = "range" not in headers and takes_zstd(headers.getlist("accept-encoding"))
        self.is_marked = is_marked
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        """Hold the head of an answer that may be coded back until its body is seen."""
        if message["type"] == "http.response.start":
            if self._may_be_coded(message):
                self._start = message
            else:
                await self._send(message)
            return
        start, self._start = self._start, None
        if start is not None:
            if not message.get("more_body", False):
                message = await _coded(start, message)
            await self._send(start)
        await self._send(message)

    def _may_be_coded(self, start: Message) -> bool:
        """Whether the answer is coded if it is long enough. Its headers then say that it depends on the request."""
        headers = MutableHeaders(raw=start["headers"])
        if start["status"] in _WITH_BODY:
            headers.add_vary_header("Accept-Encoding")
        if start["status"] == 304 and self.is_marked and "etag" in headers:
            headers["etag"] = _marked(headers["etag"])
            # Said of the bytes before they are coded.
            for name in ("accept-ranges", "repr-digest"):
                del headers[name]
        kind = headers.get("content-type", "").partition(";")[0]
        return self._is_wanted and start["status"] == 200 and kind in _TYPES


async def _coded(start: Message, message: Message) -> Message:
    body: bytes = message.get("body", b"")
    if not MIN_BYTES <= len(body) <= MAX_BYTES:
        return message
    coded = _compressed(body) if len(body) <= _INLINE_BYTES else await asyncio.to_thread(_compressed, body)
    if len(coded) >= len(body):
        return message
    start[UNCODED] = len(body)
    headers = MutableHeaders(raw=start["headers"])
    headers["content-encoding"] = ZSTD
    headers["content-length"] = str(len(coded))
    del headers["accept-ranges"]
    if "etag" in headers:
        headers["etag"] = _marked(headers["etag"])
    if "repr-digest" in headers:
        headers["repr-digest"] = f"sha-256=:{b64encode(sha256(coded).digest()).decode()}:"
    return {**message, "body": coded}


def _compressed(body: bytes) -> bytes:
    return zstd.compress(body, _LEVEL)


def _marked(etag: str) -> str:
    """The ETag of the coded representation of what has `etag`."""
    return f'{etag[:-1]}-zstd"' if etag.endswith('"') else etag
