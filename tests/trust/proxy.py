"""Somebody between a client and its service, who changes what he likes."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx2

from tests.loopback import Loopback, body_of, reply

PASSED_ON = ("Content-Type", "Content-Encoding", "Prefer")
Tamper = Callable[[str, bytes], bytes]
"""From the path of a request and the true answer to the one that is given."""


class Proxy(Loopback):
    """Stands in front of the service at `upstream`."""

    def __init__(self, upstream: str, tamper: Tamper | None = None) -> None:
        self.upstream = upstream
        self.tamper = tamper
        self.sizes: list[tuple[str | None, int]] = []
        """The content coding and the bytes of each body."""
        super().__init__()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = body_of(request)
        self.sizes.append((request.headers.get("Content-Encoding"), len(body)))
        url = self.upstream + request.path
        headers = {name: value for name in PASSED_ON if (value := request.headers.get(name)) is not None}
        answer = httpx2.request(request.command, url, content=body or None, headers=headers, timeout=60, verify=False)
        content = answer.content
        if self.tamper is not None and answer.status_code == 200:
            content = self.tamper(request.path, content)
        reply(request, answer.status_code, {"Content-Type": answer.headers["Content-Type"]}, content)


def on(path: str, change: Callable[[Any], Any]) -> Tamper:
    """Change the JSON of the answers to requests for `path` and what is below it."""

    def tamper(requested: str, content: bytes) -> bytes:
        if not requested.startswith(path):
            return content
        return json.dumps(change(json.loads(content))).encode()

    return tamper
