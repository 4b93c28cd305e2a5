"""The metrics and the readiness of a worker, at an address of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from tensorkiln.errors import UnavailableError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


@contextmanager
def figures(address: str, is_ready: Callable[[], bool]) -> Generator[None]:
    """Inside the block, /metrics and /readyz are served at `address`, if any. UnavailableError if it cannot be used."""
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UnavailableError(f"KILN_WORKER_METRICS is {address!r}: give an address and a port, as in 127.0.0.1:9100.")
    metrics = make_wsgi_app()

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/readyz":
            return metrics(environ, start)
        is_fit = is_ready()
        start("200 OK" if is_fit else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [b"ready\n" if is_fit else b"this worker does not compile\n"]

    try:
        server = _server(host.strip("[]"), int(port), answer)
    except OSError as error:
        raise UnavailableError(f"The metrics of the worker cannot be served at {address}: {error.strerror}.") from None
    with server:
        telling = threading.Thread(target=server.serve_forever, name="kiln-figures", daemon=True)
        telling.start()
        try:
            yield
        finally:
            server.shutdown()
            telling.join()


def _server(host: str, port: int, answer: Any) -> ThreadingWSGIServer:
    class Server(ThreadingWSGIServer):
        # The address may be IPv4 or IPv6.
        address_family = socket.getaddrinfo(host, port)[0][0]

    return make_server(host, port, answer, Server, _Silent)


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests."""
