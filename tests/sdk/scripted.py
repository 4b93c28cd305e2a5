"""A server that answers as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import Loopback, body_of, reply

PROBLEM = {"Content-Type": "application/problem+json"}
EVENTS = {"Content-Type": "text/event-stream"}


@dataclass(frozen=True)
class Request:
    """A request as it came in; the names of `headers` are in lower case."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """What the scripted server sends after `delay_s` seconds.

    `cut` closes the connection instead of answering. `stays_s` makes it a stream: the body without its length, and the
    connection closed so many seconds after it.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    delay_s: float = 0.0
    cut: bool = False
    stays_s: float | None = None


class ScriptedServer(Loopback):
    """Gives its answers in order, the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.received: list[Request] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        super().__init__()

    @property
    def requests(self) -> list[tuple[str, str, bytes]]:
        """Method, path and body of each request."""
        return [(each.method, each.path, each.body) for each in self.received]

    def answers_with(self, body: bytes = b"{}", *, status: int = 200, **sent: Any) -> None:
        self.answers.append(Answer(status, body, **sent))

    def refuses_with(self, status: int, code: str, detail: str, *, retry_after: str | None = None, **more: Any) -> None:
        """Append an RFC 9457 problem."""
        body = {"type": "about:blank", "title": code, "status": status, "detail": detail, "code": code, **more}
        headers = PROBLEM if retry_after is None else {**PROBLEM, "Retry-After": retry_after}
        self.answers.append(Answer(status, json.dumps(body).encode(), headers))

    def tells(self, events: Sequence[tuple[str, str, dict[str, Any]]], *, stays_s: float = 0.0) -> None:
        """Append a stream of events: id, kind and data of each."""
        lines = [f"id: {id}\nevent: {kind}\ndata: {json.dumps(data)}\n\n" for id, kind, data in events]
        self.answers.append(Answer(200, "".join([": hello\n\n", *lines]).encode(), EVENTS, stays_s=stays_s))

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = body_of(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self._lock:
            self.received.append(Request(request.command, request.path, body, headers))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self._stopping.wait(answer.delay_s)
        if answer.cut:
            request.close_connection = True
        elif answer.stays_s is None:
            reply(request, answer.status, answer.headers, answer.body)
        else:
            self._stream(request, answer, answer.stays_s)

    def close(self) -> None:
        self._stopping.set()
        super().close()

    def _stream(self, request: BaseHTTPRequestHandler, answer: Answer, stays_s: float) -> None:
        request.close_connection = True
        request.send_response(answer.status)
        for name, value in {**answer.headers, "Connection": "close"}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(answer.body)
        request.wfile.flush()
        self._stopping.wait(stays_s)
