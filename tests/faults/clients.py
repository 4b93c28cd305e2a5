"""Clients that cost little, so that a machine measures its service and not them."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.service.server import JSON


@dataclass(frozen=True, slots=True)
class Answer:
    """How one request was answered: seconds until it had come, milliseconds that the service says it took, body."""

    status: int
    seconds: float
    server_ms: float
    content: bytes


def send(url: str, bodies: Sequence[bytes], clients: int, path: str = "/compile") -> tuple[list[Answer], float]:
    """What becomes of `bodies`, sent by so many clients with a connection each; and the seconds for all of them."""
    answers: list[Answer] = []
    left, lock = iter(bodies), threading.Lock()
    begin_together = threading.Barrier(clients + 1)

    def work() -> None:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=600)
        connection.connect()
        begin_together.wait()
        for body in _shared(left, lock):
            began = time.perf_counter()
            connection.request("POST", path, body, JSON)
            response = connection.getresponse()
            content = response.read()
            taken = time.perf_counter() - began
            server_ms = float(response.headers["Server-Timing"].rpartition("dur=")[2])
            answers.append(Answer(response.status, taken, server_ms, content))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    begin_together.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return answers, time.perf_counter() - began


def percentile(samples: Sequence[float], share: float) -> float:
    """What this share of the samples does not exceed."""
    ordered = sorted(samples)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _shared(bodies: Iterator[bytes], lock: threading.Lock) -> Iterator[bytes]:
    while True:
        with lock:
            body = next(bodies, None)
        if body is None:
            return
        yield body
