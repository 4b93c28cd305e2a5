"""A load balancer as a rolling restart needs it: it goes by `/readyz` alone, and sends no request twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import cycle
from types import TracebackType
from typing import Final, Self

import httpx2

from tests.faults.requests import HTTP

EVERY_S: Final = 0.2
FALL: Final = 2
"""So many looks in turn at a service that is not ready take it out, as balancers have it: one may be an accident."""
_PATIENCE_S: Final = 5.0


class Balancer:
    """Sends each request to one of the services that are ready, by turns. `taken_out` has when each was taken out."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._turns = cycle(urls)
        self._services = len(urls)
        self._ready: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._probes = [threading.Thread(target=self._probe, args=(url,)) for url in urls]
        self.taken_out: dict[str, list[float]] = {url: [] for url in urls}

    def route(self) -> str | None:
        """Where the next request goes; None when nobody is ready."""
        with self._lock:
            for _ in range(self._services):
                if (url := next(self._turns)) in self._ready:
                    return url
        return None

    def await_ready(self, url: str) -> None:
        """Come back when requests are sent to a service; never is for the time-out of the test."""
        while url not in self._ready:
            time.sleep(EVERY_S / 2)

    def _probe(self, url: str) -> None:
        failures = 0
        while not self._over.wait(EVERY_S):
            failures = 0 if _is_ready(url) else failures + 1
            with self._lock:
                if not failures:
                    self._ready |= {url}
                elif failures == FALL and url in self._ready:
                    self._ready -= {url}
                    self.taken_out[url].append(time.monotonic())

    def __enter__(self) -> Self:
        for probe in self._probes:
            probe.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for probe in self._probes:
            probe.join()


def _is_ready(url: str) -> bool:
    try:
        return HTTP.get(f"{url}/readyz", timeout=_PATIENCE_S).status_code == 200
    except httpx2.TransportError:
        return False
