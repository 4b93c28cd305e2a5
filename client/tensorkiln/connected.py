"""The sockets of a client, so that whoever waits on one hears at once that the client was closed."""

from __future__ import annotations

import socket
import weakref
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Lock
from typing import Any, Final

import httpx2

_CONNECTED: Final = frozenset(
    {"connection.connect_tcp.complete", "connection.connect_unix_socket.complete", "connection.start_tls.complete"}
)


class Connected:
    """The sockets of the requests that it watches. `closed` is set, and they are shut down, when it hangs up."""

    def __init__(self, closed: Event) -> None:
        self._closed = closed
        self._lock = Lock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def watch(self, request: httpx2.Request) -> None:
        """Note the sockets that are opened for a request which is about to be sent."""
        request.extensions["trace"] = self._note

    def hang_up(self) -> None:
        """End what other threads read and write, which giving their connections back would not."""
        with self._lock:
            self._closed.set()
            open_now = list(self._sockets)
        for each in open_now:
            _shut_down(each)

    def _note(self, event: str, told: Mapping[str, Any]) -> None:
        if event not in _CONNECTED:
            return
        connected: socket.socket = told["return_value"].get_extra_info("socket")
        with self._lock:
            self._sockets.add(connected)
            is_late = self._closed.is_set()
        if is_late:
            _shut_down(connected)


def _shut_down(connected: socket.socket) -> None:
    # With TLS, its own way to do this takes the connection from under the thread that reads.
    with suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
