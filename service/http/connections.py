"""Limits on client connections: how many, and how long each may take to send a request; uvicorn has none of these."""

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
"""Bytes per second at which a client must read its answer, checked every STALLED_S seconds."""
MOST: Final = 4096
HEAD_BYTES: Final = 64 << 10
"""Maximum size of a request head that arrives in several pieces."""
SAFE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
"""Sent with every answer, so that browsers do not misinterpret it. Only the API's page has inline scripts."""
_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})
KEPT_FILES: Final = 256
"""File descriptors reserved for the store and the sandbox."""


def most_connections() -> int:
    """The maximum number of connections; raises the soft limit of open files as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + KEPT_FILES
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    return MOST if soft == resource.RLIM_INFINITY else max(16, min(MOST, soft - KEPT_FILES))


def connections(head_s: float, stalled_s: float = STALLED_S) -> type[H11Protocol]:
    """A protocol class whose connections must receive each request head within `head_s` seconds."""
    own = {"most": most_connections(), "head_s": head_s, "stalled_s": stalled_s, "silent": {}}
    return type("Connection", (Connection,), own)


class Connection(H11Protocol):
    """A connection that is closed when a request head arrives too late, or its answer is not read.

    Above the maximum, the connection that has been idle longest is closed: the new one if all others are served.
    """

    most: int
    head_s: float
    stalled_s: float
    silent: dict[Connection, None]
    """Idle connections, the oldest first; their client may still be reading the last answer."""

    _served: ASGIApp
    _head: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None
    _unsent = 0
    _has_moved = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection, and close another if there are too many."""
        super().connection_made(transport)
        self._served, self.app = self.app, self._serve
        self._look_for_head()
        if len(self.connections) > self.most:
            oldest = next(iter(self.silent))
            oldest._has_head()
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_head()
        if self._look is not None:
            self._look.cancel()
        self.app = self._served
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look_for_head()

    def on_response_complete(self) -> None:
        """Wait for the next request, part of which may have arrived."""
        super().on_response_complete()
        self._watch_fetching()
        self._look_for_head()

    def pause_writing(self) -> None:
        """The send buffer is full: watch whether the client reads."""
        super().pause_writing()
        self._watch_fetching()

    def resume_writing(self) -> None:
        """The client has read from the send buffer."""
        self._has_moved = True
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer malformed HTTP with a problem, before any authentication, and close the connection."""
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
            # Let the handler of the unfinished request stop: its client gets no answer.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_two_lengths = {name for name, _ in scope["headers"]} >= _LENGTHS

        async def sending(message: Message) -> None:
            # The client still waits for leave to send its body, or a proxy may have seen another end of the body: the
            # next bytes could be body or request, so the connection is closed.
            is_last = has_two_lengths or self.conn.they_are_waiting_for_100_continue
            if message["type"] == "http.response.start" and is_last:
                message = {**message, "headers": [*message.get("headers", ()), CLOSE_HEADER]}
            await send(message)

        await self._served(scope, receive, sending)

    def _look_for_head(self) -> None:
        """Start the timer of the next request head, unless a request is being answered."""
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
        """Close the connection, as no request came; a client still reading the last answer gets more time."""
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
