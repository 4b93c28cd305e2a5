"""Somebody between the members of a farm and its broker, as a balancer or a firewall is, who loses connections."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Self

_MOST_BYTES = 1 << 16


class Relay:
    """What comes to its own `port` while the context lasts goes to the port `upstream` of this machine, and back."""

    def __init__(self) -> None:
        self.upstream = 0
        self._lost = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._listening = Thread(target=self._listen)

    def lose(self) -> None:
        """Swallow what comes over the connections that there are, and end none of them."""
        self._lost += 1

    def __enter__(self) -> Self:
        self._listening.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _end(self._listener)
        self._listening.join()
        self._listener.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                Thread(target=self._serve, args=self._listener.accept()[:1], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        lost = self._lost
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self.upstream)) as there:
            back = Thread(target=self._carry, args=(lost, there, client), daemon=True)
            back.start()
            self._carry(lost, client, there)
            _end(there)
            back.join()

    def _carry(self, lost: int, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while content := source.recv(_MOST_BYTES):
                if lost == self._lost:
                    sink.sendall(content)
        if lost == self._lost:
            _end(sink)


def _end(connection: socket.socket) -> None:
    """Have whoever waits for it, in whatever thread, see that it is over."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
