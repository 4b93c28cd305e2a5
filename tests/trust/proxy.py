"""Somebody between a client and its service, who changes what he likes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import httpx2

Tamper = Callable[[str, bytes], bytes]
"""From the path of a request and the true answer to the one that is given."""


class Proxy:
    """A real HTTP server on the loopback in front of the service at `upstream`."""

    def __init__(self, upstream: str, tamper: Tamper | None = None) -> None:
        self.upstream = upstream
        self.tamper = tamper
        self.paths: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.relay(self)

            def do_POST(self) -> None:
                outer.relay(self)

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def relay(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        self.paths.append(request.path)
        url, headers = self.upstream + request.path, {"Content-Type": "application/json"} if body else {}
        answer = httpx2.request(request.command, url, content=body or None, headers=headers, timeout=60)
        content = answer.content
        if self.tamper is not None and answer.status_code == 200:
            content = self.tamper(request.path, content)
        request.send_response(answer.status_code)
        request.send_header("Content-Type", answer.headers["Content-Type"])
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def on(path: str, change: Callable[[Any], Any]) -> Tamper:
    """Change the JSON of the answers to requests for `path` and what is below it."""

    def tamper(requested: str, content: bytes) -> bytes:
        if not requested.startswith(path):
            return content
        return json.dumps(change(json.loads(content))).encode()

    return tamper
