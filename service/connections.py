"""Connections of strangers: how many, and how long each may take to say what it wants.

uvicorn gives a connection all the time in the world for its first request, and the kernel as many as the process has
file descriptors: whoever opens some and says nothing would shut everybody else out.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

STALLED_S: Final = 60.0
"""So long a client may take to fetch some of what was sent to it."""
MOST: Final = 4096
KEPT_FILES: Final = 256
"""File descriptors that are for other things than connections: the store, the sandbox, the broker."""


def most_connections() -> int:
    """How many connections there may be at a time; raises the limit of open files as far as that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + KEPT_FILES
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    return MOST if soft == resource.RLIM_INFINITY else max(16, min(MOST, soft - KEPT_FILES))


def connections(head_s: float) -> type[H11Protocol]:
    """The protocol of connections on which the head of a request has to be there within `head_s` seconds."""
    return type("Connection", (Connection,), {"most": most_connections(), "head_s": head_s, "silent": {}})


class Connection(H11Protocol):
    """A connection that is closed when the head of a request does not come in time, or its answer is not fetched.

    When there are too many, the one is closed that has said nothing for longest, so that nobody is shut out by those
    who hold theirs open; the new one only if all others have their requests answered.
    """

    most: int
    head_s: float
    silent: dict[Connection, None]
    """Those without a request, the oldest first."""

    _head: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, and make room for it."""
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > self.most:
            oldest = next(iter(self.silent))
            oldest._has_head()
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._has_head()
        self._is_fetched()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request, or of the next."""
        super().data_received(data)
        if self._is_idle:
            self._await_head()
        else:
            self._has_head()

    def on_response_complete(self) -> None:
        """The next request may come, and may have come in part."""
        super().on_response_complete()
        if self._is_idle:
            self._await_head()

    def pause_writing(self) -> None:
        """The client does not fetch what is sent."""
        super().pause_writing()
        self._stall = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        """It does."""
        self._is_fetched()
        super().resume_writing()

    @property
    def _is_idle(self) -> bool:
        return not self.cycle or self.cycle.response_complete

    def _await_head(self) -> None:
        if self._head is None and not self.transport.is_closing():
            self.silent[self] = None
            self._head = self.loop.call_later(self.head_s, self.transport.abort)

    def _has_head(self) -> None:
        if self._head is not None:
            del self.silent[self]
            self._head.cancel()
            self._head = None

    def _is_fetched(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
