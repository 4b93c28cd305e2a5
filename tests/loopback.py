"""A real HTTP server on the loopback, to stand between a client and what it believes to talk to."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class Loopback(ABC):
    """Listens at `url` until it is closed; `handle` answers, each request in a thread of its own."""

    def __init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.handle(self)

            do_POST = do_DELETE = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that leaves early is not worth a traceback."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @abstractmethod
    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a request."""

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def body_of(request: BaseHTTPRequestHandler) -> bytes:
    """The body of a request."""
    return request.rfile.read(int(request.headers.get("Content-Length") or 0))


def reply(request: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], content: bytes) -> None:
    """Answer with a body of known length, and no header but these."""
    request.send_response_only(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)
