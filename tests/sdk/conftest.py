from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import stamina.instrumentation

from tensorkiln import Client, Graph
from tensorkiln.build import Builder, relu


@dataclass
class Answer:
    """What the scripted server sends; `cut` closes the connection instead of answering."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    delay_s: float = 0.0
    cut: bool = False


class ScriptedServer:
    """A real HTTP server on the loopback that gives its answers in order, the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[tuple[str, str, bytes]] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.handle(self)

            def do_POST(self) -> None:
                outer.handle(self)

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.stopping = threading.Event()

    def answers_with(self, body: bytes = b"{}", *, status: int = 200, **sent: Any) -> None:
        """Append an answer."""
        self.answers.append(Answer(status, body, **sent))

    def refuses_with(self, status: int, code: str, detail: str, *, retry_after: str | None = None, **more: Any) -> None:
        """Append an RFC 9457 problem."""
        body = {"type": "about:blank", "title": code, "status": status, "detail": detail, "code": code, **more}
        headers = {"Content-Type": "application/problem+json"}
        if retry_after is not None:
            headers["Retry-After"] = retry_after
        self.answers.append(Answer(status, json.dumps(body).encode(), headers))

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        with self._lock:
            self.requests.append((request.command, request.path, body))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.stopping.wait(answer.delay_s)
        if answer.cut:
            request.close_connection = True
            return
        request.send_response(answer.status)
        for name, value in answer.headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(answer.body)))
        request.end_headers()
        request.wfile.write(answer.body)

    def close(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


class RemoteService:
    """A service on a port of the loopback, run as an operator runs it."""

    def __init__(self, home: Path) -> None:
        command = [sys.executable, "-m", "tensorkiln.cli", "serve", "--port", "0"]
        environment = {**os.environ, "KILN_HOME": str(home)}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        ready = re.search(r"http://\S+", self._process.stdout.readline())
        assert ready is not None
        self.url = ready[0]

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self._process.terminate()
        self._process.communicate(timeout=60)
        return self._process.returncode


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[RemoteService]:
    """A service of the test's own."""
    service = RemoteService(tmp_path / "server")
    yield service
    service.stop()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service that the tests share."""
    service = RemoteService(tmp_path_factory.mktemp("served"))
    yield service.url
    assert service.stop() == 0


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home directory of the one embedded service that the tests share."""
    return tmp_path_factory.mktemp("kiln-home")


@pytest.fixture
def client(home: Path) -> Iterator[Client]:
    """A client of the embedded service."""
    with Client(cache_dir=home) as client:
        yield client


@pytest.fixture
def layer() -> Graph:
    """relu(x @ w) with x of n by 8 float32 and w of 8 by 3; 1 <= n <= 64."""
    b = Builder("layer")
    x, w = b.input("float32", (b.symbol("n", 1, 64), 8)), b.input("float32", (8, 3))
    b.output(relu(x @ w))
    return b.graph()


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KILN_CONFIG_DIR", str(tmp_path / "config"))
    for name in ("KILN_URL", "KILN_HOME", "KILN_TIMEOUT_S", "KILN_STARTUP_TIMEOUT_S"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _quiet_retries() -> Iterator[None]:
    stamina.instrumentation.set_on_retry_hooks([])
    yield
    stamina.instrumentation.set_on_retry_hooks(None)
