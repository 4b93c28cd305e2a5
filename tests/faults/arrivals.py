"""Requests that come when they come, whether the ones before them have been answered or not."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Final
from urllib.parse import urlsplit

from tests.faults.balancer import Balancer
from tests.faults.requests import body
from tests.service.server import JSON

_AT_ONCE: Final = 128
SERVED: Final = (200, 202)
STORED: Final = 8
"""So many requests have an answer already, and are most of what is sent."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request: when it went to which service, and what came of it; a status of 0 is a connection that broke.

    `told` is what was said of one that failed.
    """

    at: float
    url: str | None
    status: int
    told: str = ""


@dataclass
class Arrivals:
    """`per_second` requests, sent once each to where the balancer says. Of 50, one is a new compile and one a job."""

    balancer: Balancer
    per_second: float
    sent: list[Sent] = field(default_factory=list[Sent])
    jobs: list[str] = field(default_factory=list[str])
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def coming(self) -> Generator[None]:
        """They come while the block runs; at its end all have been answered."""
        coming = threading.Thread(target=self._come)
        coming.start()
        try:
            yield
        finally:
            self._over.set()
            coming.join()

    def statuses(self) -> Counter[int]:
        """How often each status was answered."""
        return Counter(each.status for each in self.sent)

    def failed(self) -> list[Sent]:
        """Those that were answered with a refusal, or not at all."""
        return [each for each in self.sent if each.status not in SERVED]

    def rate(self) -> float:
        """How many were really sent in a second."""
        times = [each.at for each in self.sent]
        return (len(times) - 1) / (max(times) - min(times))

    def _come(self) -> None:
        begin = time.monotonic()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for number in count():
                if self._over.wait(max(begin + number / self.per_second - time.monotonic(), 0.0)):
                    return
                pool.submit(self._send, number)

    def _send(self, number: int) -> None:
        url, at = self.balancer.route(), time.monotonic()
        is_job = number % 50 == 25
        content = body(3000 + number if number % 25 == 0 else number % STORED, "sqrt")
        headers = {"Prefer": "respond-async"} if is_job else {}
        status, answer = _post(url, content, headers) if url else (503, b"the balancer has no service that is ready")
        told = "" if status in SERVED else answer.decode(errors="replace")
        if is_job and not told:
            self.jobs.append(json.loads(answer)["id"])
        self.sent.append(Sent(at, url, status, told))


def _post(url: str, content: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    try:
        connection.request("POST", "/compile", content, {**JSON, **headers})
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error).encode()
    finally:
        connection.close()
