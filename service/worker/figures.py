"""The figures of a worker, and whether it is ready: of all its processes, told by one more of them.

`python -m service.worker.figures ADDRESS DIRECTORY`, which the worker starts where KILN_WORKER_METRICS is set. It ends
with its standard input. A thread of the worker itself would be there when the worker forks.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, make_server

from tensorkiln.errors import UnavailableError

from .probe import DIRECTORY, is_ready

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_READY: Final = b"ready\n"


@contextmanager
def figures(address: str) -> Generator[None]:
    """Inside the block, /metrics at `address` has the figures of this process and of those that it forks.

    /readyz is 200 while one of those compiles and gets orders from the broker, and 503 otherwise.

    Has to be entered before anything is counted, as the Python client of Prometheus asks for. UnavailableError when the
    address is none, or in use. With an empty address nothing is told.
    """
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UnavailableError(f"KILN_WORKER_METRICS is {address!r}: give an address and a port, as in 127.0.0.1:9100.")
    with tempfile.TemporaryDirectory(prefix="kiln-figures-") as directory:
        os.environ[DIRECTORY] = directory
        command = [sys.executable, "-P", "-m", "service.worker.figures", host.strip("[]"), port]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as teller:
            assert teller.stdin is not None
            assert teller.stdout is not None
            try:
                if teller.stdout.readline() != _READY:
                    raise UnavailableError(f"The figures of the worker cannot be told at {address}.")
                yield
            finally:
                teller.stdin.close()


def main() -> int:
    """The exit status."""
    from prometheus_client import CollectorRegistry, make_wsgi_app
    from prometheus_client.exposition import ThreadingWSGIServer
    from prometheus_client.multiprocess import MultiProcessCollector

    host, port = sys.argv[1:]
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    try:
        # Of the address, the kind is not stated: IPv4 or IPv6.
        ThreadingWSGIServer.address_family = socket.getaddrinfo(host, port)[0][0]
        server = make_server(host, int(port), _routes(make_wsgi_app(registry)), ThreadingWSGIServer, _Silent)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    except OSError as error:
        print(f"{host}:{port}: {error.strerror}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    sys.stdin.buffer.read()
    return 0


def _routes(metrics: WSGIApplication) -> WSGIApplication:
    directory = Path(os.environ[DIRECTORY])

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/readyz":
            return metrics(environ, start)
        is_fit = is_ready(directory)
        start("200 OK" if is_fit else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [b"ready\n" if is_fit else b"no process of this worker compiles and gets orders\n"]

    return answer


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Whoever asks is not logged."""


if __name__ == "__main__":
    sys.exit(main())
