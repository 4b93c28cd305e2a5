"""Keys and records that are not what they should be, and a proxy that changes what a client and its service say."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx2

from service.trust.keyring import KeyFile
from tensorkiln.trust import ActionRecord, SignedRecord, signed_bytes
from tests.loopback import Loopback, body_of, reply

YEAR_S = 365 * 86_400


def fresh_key(begin: float = 0.0, end: float = YEAR_S) -> KeyFile:
    """A key that is valid from `begin` to `end`, in seconds from now."""
    now = int(time.time())
    return KeyFile.fresh(now + int(begin), now + int(end))


def record(key: KeyFile, **changes: Any) -> ActionRecord:
    """A record as a service would make it, but for `changes`."""
    fields = {
        "action": "a" * 64,
        "request": {
            "abi": 1,
            "graph": "b" * 64,
            "options": {"fast_math": False},
            "schema": 1,
            "target": {"kind": "cpu", "features": ["avx"]},
        },
        "program": "c" * 64,
        "artifacts": ("d" * 64, "e" * 64),
        "stages": {},
        "build_id": "f" * 64,
        "isolation": "process",
        "worker": "w",
        "key": key.kid,
        "issued_at": int(time.time()),
    }
    return ActionRecord.model_validate({**fields, **changes})


def signed(key: KeyFile, of: ActionRecord) -> SignedRecord:
    """`of` with the signature of `key`, whatever key it names."""
    return SignedRecord(record=of, signature=key.sign(signed_bytes(of)))


def altered(of: SignedRecord, **changes: Any) -> SignedRecord:
    """Another record with the signature of this one."""
    return of.model_copy(update={"record": of.record.model_copy(update=changes)})


PASSED_ON = ("Content-Type", "Content-Encoding", "Prefer")
Tamper = Callable[[str, bytes], bytes]
"""From the path of a request and the true answer to the one that is given."""


class Proxy(Loopback):
    """Stands in front of the service at `upstream`, by a clock that is `ahead_s` of its own."""

    def __init__(self, upstream: str, tamper: Tamper | None = None, ahead_s: float = 0.0) -> None:
        self.upstream = upstream
        self.ahead_s = ahead_s
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
        date = formatdate(time.time() + self.ahead_s, usegmt=True)
        reply(request, answer.status_code, {"Content-Type": answer.headers["Content-Type"], "Date": date}, content)


def on(path: str, change: Callable[[Any], Any]) -> Tamper:
    """Change the JSON of the answers to requests for `path` and what is below it."""

    def tamper(requested: str, content: bytes) -> bytes:
        if not requested.startswith(path):
            return content
        return json.dumps(change(json.loads(content))).encode()

    return tamper
