"""A connection that others can break off, so that whoever waits on it hears of it at once."""

from __future__ import annotations

import socket
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from threading import TIMEOUT_MAX, Lock, Timer
from typing import TYPE_CHECKING, Any, Final

from .deadline import Deadline

if TYPE_CHECKING:
    import httpx2

_CONNECTED: Final = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")


class Connected:
    """One connection of an HTTP client that `make` builds, for one request at a time.

    A client of many has no way to tell on which of them a request waits for its answer.
    """

    def __init__(self, make: Callable[..., httpx2.Client]) -> None:
        import httpx2

        self._lock = Lock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._request: object = None
        self._is_broken = False
        self.http = make(limits=httpx2.Limits(max_connections=1), event_hooks={"request": [self._watch]})

    @property
    def is_broken(self) -> bool:
        """Whether it was broken off, and is of no use any more."""
        return self._is_broken

    @contextmanager
    def until(self, deadline: Deadline | None) -> Generator[None]:
        """Break it off when the deadline comes within this block. httpx2.ReadTimeout for what fails by that."""
        import httpx2

        if deadline is None:
            yield
            return
        # The time-outs of a socket are for each read and write, of which there may be any number.
        request = self._request = object()
        timer = Timer(min(deadline.left_s, TIMEOUT_MAX), self._break_off, (request,))
        timer.daemon = True
        timer.start()
        try:
            yield
        except httpx2.HTTPError as error:
            if not deadline.is_over:
                raise
            raise httpx2.ReadTimeout("the answer is too slow") from error
        finally:
            timer.cancel()
            with self._lock:
                self._request = None

    def hang_up(self) -> None:
        """End what another thread reads and writes, which giving the connection back would not."""
        self._break_off()

    def _break_off(self, request: object = None) -> None:
        with self._lock:
            # A timer that is late finds the connection with the next request.
            if request is not None and request is not self._request:
                return
            self._is_broken = True
            open_now = list(self._sockets)
        for each in open_now:
            _shut_down(each)

    def _watch(self, request: httpx2.Request) -> None:
        request.extensions["trace"] = self._note

    def _note(self, event: str, told: Mapping[str, Any]) -> None:
        # By way of a proxy, too.
        if not event.endswith(_CONNECTED):
            return
        connected: socket.socket = told["return_value"].get_extra_info("socket")
        with self._lock:
            self._sockets.add(connected)
            is_late = self._is_broken
        if is_late:
            _shut_down(connected)


def _shut_down(connected: socket.socket) -> None:
    # With TLS, its own way to do this takes the connection from under the thread that reads.
    with suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
