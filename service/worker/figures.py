"""The metrics and the readiness of a worker, at an address of its own."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import make_wsgi_app, start_http_server

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
        server, telling = start_http_server(int(port), host.strip("[]"))
    except OSError as error:
        raise UnavailableError(f"The metrics of the worker cannot be served at {address}: {error.strerror}.") from None
    server.set_app(answer)
    with server:
        try:
            yield
        finally:
            server.shutdown()
            telling.join()
