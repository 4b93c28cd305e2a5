"""A program that traces itself: a service and a client of it in one process, whose spans it prints as JSON."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from service.observe.telemetry import configure_log
from service.server.serve import create_app
from service.settings import Settings
from tensorkiln import Client
from tests.service.bodies import graph


def main(home: Path) -> None:
    configure_log("error")
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(create_app(Settings(home=home)), log_config=None, timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with Client(url, cache_dir=home / "cache") as client, provider.get_tracer("test").start_as_current_span("user"):
            client.compile_for(graph(), ["cpu:x86-64-v3"])
        server.should_exit = True
        thread.join()
    print(json.dumps([described(span) for span in exporter.get_finished_spans()]))


def described(span: Any) -> dict[str, Any]:
    return {
        "name": span.name,
        "kind": span.kind.name,
        "trace": f"{span.context.trace_id:032x}",
        "id": span.context.span_id,
        "parent": span.parent.span_id if span.parent is not None else None,
        "begin": span.start_time,
        "end": span.end_time,
        "attributes": dict(span.attributes or {}),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
