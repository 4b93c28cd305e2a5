"""A collector of spans: what it is sent by OTLP over HTTP, it keeps."""

from __future__ import annotations

import gzip
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """A span; `trace` is the id of its trace in hexadecimal digits."""

    name: str
    trace: str


@dataclass
class Spans:
    """Where to send spans to, and what has been sent."""

    url: str
    received: list[Span] = field(default_factory=list[Span])

    def take(self, content: bytes) -> None:
        message: Any = ExportTraceServiceRequest.FromString(content)
        for resource in message.resource_spans:
            for scope in resource.scope_spans:
                self.received += [Span(span.name, span.trace_id.hex()) for span in scope.spans]


@contextmanager
def collector() -> Generator[Spans]:
    """A collector that lives as long as the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            spans.take(gzip.decompress(content) if self.headers.get("Content-Encoding") == "gzip" else content)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    spans = Spans(f"http://127.0.0.1:{server.server_address[1]}")
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield spans
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
