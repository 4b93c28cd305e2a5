"""`python -m tensorkiln_server worker`: compile what the services of a farm ask for, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from service.observe.instruments import REGISTRY
from service.observe.log import configure_log
from service.observe.traces import record_spans, require_exporter
from service.sandbox.cgroups import move_into_leaf
from service.settings import Settings, read_settings
from tensorkiln.errors import UnavailableError

from .bench import Bench

_ENDS: Final = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    settings = read_settings()
    if settings is None:
        return 1
    configure_log(settings.log)
    end_spans = None
    try:
        if settings.tracing:
            require_exporter()
            end_spans = record_spans()
        asyncio.run(_work(settings))
    except UnavailableError as error:
        print(f"The worker cannot start: {error}", file=sys.stderr)
        return 1
    finally:
        if end_spans is not None:
            end_spans()
    return 0


async def _work(settings: Settings) -> None:
    """Work until SIGTERM, which lets started orders finish, or SIGQUIT, which does not.

    UnavailableError when the isolation, the key or the store is not what a worker needs.
    """
    move_into_leaf()
    bench, ending = Bench.on(settings), asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        await bench.start()
        with figures(settings.worker_metrics, bench.is_ready):
            working = asyncio.create_task(bench.work(ending))
            for number in _ENDS:
                loop.add_signal_handler(number, ending.set)
            loop.add_signal_handler(signal.SIGQUIT, working.cancel)
            print("tensorkiln worker is ready", flush=True)
            await asyncio.wait({working})
    finally:
        await bench.close()
    if not working.cancelled():
        working.result()


if __name__ == "__main__":
    sys.exit(main())


if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


@contextmanager
def figures(address: str, is_ready: Callable[[], bool]) -> Generator[None]:
    """Inside the block, /metrics at `address` has the metrics of this process; /readyz is 200 while it `is_ready`.

    UnavailableError when the address is invalid or in use. With an empty address nothing is served.
    """
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UnavailableError(f"KILN_WORKER_METRICS is {address!r}: give an address and a port, as in 127.0.0.1:9100.")
    metrics = make_wsgi_app(REGISTRY)

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
