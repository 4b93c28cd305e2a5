"""Connections of strangers: how many, and how long each may take to say what it wants.

uvicorn gives a connection all the time in the world for its first request, and the kernel as many as the process has
file descriptors: whoever opens some and says nothing would shut everybody else out.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from tensorkiln.errors import RequestError

from .problems import respond

STALLED_S: Final = 60.0
LEAST_RATE: Final = 4096
"""Bytes in a second that a client fetches of its answer, or it is not fetching; looked at every STALLED_S."""
MOST: Final = 4096
HEAD_BYTES: Final = 64 << 10
"""Of the head of a request that does not come in one piece."""
SAFE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
"""On every answer: what a browser must not take it for. The only page is that of the API, with its script inline."""
_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})
KEPT_FILES: Final = 256
"""File descriptors that are for other things than connections: the store and the sandbox."""


def most_connections() -> int:
    """How many connections there may be at a time; raises the limit of open files as far as that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + KEPT_FILES
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    return MOST if soft == resource.RLIM_INFINITY else max(16, min(MOST, soft - KEPT_FILES))


def connections(head_s: float, stalled_s: float = STALLED_S) -> type[H11Protocol]:
    """The protocol of connections on which the head of a request has to be there within `head_s` seconds."""
    own = {"most": most_connections(), "head_s": head_s, "stalled_s": stalled_s, "silent": {}}
    return type("Connection", (Connection,), own)


class Connection(H11Protocol):
    """A connection that is closed when the head of a request does not come in time, or its answer is not fetched.

    When there are too many, the one is closed that has been without a request for longest, so that nobody is shut out
    by those who hold theirs open; the new one only if all others are being served.
    """

    most: int
    head_s: float
    stalled_s: float
    silent: dict[Connection, None]
    """Those without a request, the oldest first; their last answer may not be fetched yet."""

    _served: ASGIApp
    _head: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None
    _unsent = 0
    _has_moved = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, and make room for it."""
        super().connection_made(transport)
        self._served, self.app = self.app, self._serve
        self._look_for_head()
        if len(self.connections) > self.most:
            oldest = next(iter(self.silent))
            oldest._has_head()
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._has_head()
        if self._look is not None:
            self._look.cancel()
        self.app = self._served
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request, or of the next."""
        super().data_received(data)
        self._look_for_head()

    def on_response_complete(self) -> None:
        """The next request may come, and may have come in part."""
        super().on_response_complete()
        self._watch_fetching()
        self._look_for_head()

    def pause_writing(self) -> None:
        """Some of what is sent has to be fetched before there is more."""
        super().pause_writing()
        self._watch_fetching()

    def resume_writing(self) -> None:
        """It was."""
        self._has_moved = True
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """A problem for what is no HTTP, before which nobody has been asked, and the end of the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            cause = sys.exception()
            status = cause.error_status_hint if isinstance(cause, h11.RemoteProtocolError) else HTTPStatus.BAD_REQUEST
            answer = respond(RequestError(f"{msg} {cause or ''}".rstrip()), status=status)
            headers = [*self.config.encoded_headers, *answer.raw_headers, (b"connection", b"close")]
            head = h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode())
            self.transport.write(self.conn.send(head) or b"")
            with suppress(h11.LocalProtocolError):  # an answer to HEAD has no body
                self.transport.write(self.conn.send(h11.Data(data=bytes(answer.body))) or b"")
        if self.cycle:
            # Whoever is at the request that this was to be has nobody to answer any more.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_two_lengths = {name for name, _ in scope["headers"]} >= _LENGTHS

        async def sending(message: Message) -> None:
            # Nobody asked for the body that is waiting to be sent, or a proxy saw another end of the body than this
            # service: what comes next could be the rest of it, or a request.
            is_last = has_two_lengths or self.conn.they_are_waiting_for_100_continue
            if message["type"] == "http.response.start" and is_last:
                message = {**message, "headers": [*message.get("headers", ()), CLOSE_HEADER]}
            await send(message)

        await self._served(scope, receive, sending)

    def _look_for_head(self) -> None:
        """Give the head of the next request its time, unless one is being answered."""
        if self.cycle and not self.cycle.response_complete:
            self._has_head()
        elif self._head is None:
            self.silent[self] = None
            self._head = self.loop.call_later(self.head_s, self._is_late)

    def _has_head(self) -> None:
        if self._head is not None:
            del self.silent[self]
            self._head.cancel()
            self._head = None

    def _is_late(self) -> None:
        """No request has come; one who is still fetching the answer before it has time."""
        if self._look is None:
            self.transport.abort()
        else:
            self._head = self.loop.call_later(self.head_s, self._is_late)

    def _watch_fetching(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        if self._unsent and self._look is None:
            self._look = self.loop.call_later(self.stalled_s, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        enough = self._unsent - self.stalled_s * LEAST_RATE
        if self._has_moved or self.transport.get_write_buffer_size() <= max(enough, 0):
            self._has_moved = False
            self._watch_fetching()
        else:
            self.transport.abort()
