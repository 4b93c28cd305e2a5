"""Readiness as it is seen from outside."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

import httpx2

from tests.faults.size import sized
from tests.service.server import children

RED_WITHIN_S: Final = sized(45.0, 15.0)
"""How soon what breaks is seen; at the small size, on a machine that runs other tests."""


def failed(url: str) -> dict[str, str]:
    """The checks that fail now, with their reasons."""
    # To load certificates, of which there are none here, takes longer than to ask.
    answer = httpx2.get(f"{url}/readyz", timeout=30, verify=False)
    if answer.status_code == 200:
        return {}
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["code"], problem["retryable"]) == ("infra.unavailable", True)
    assert all(name in problem["detail"] for name in problem["details"]["failed"])
    return problem["details"]["failed"]


def await_red(url: str, check: str) -> str:
    """The reason of a check once it fails, which is soon."""
    begin = time.monotonic()
    while check not in (found := failed(url)):
        assert time.monotonic() - begin < RED_WITHIN_S
        time.sleep(0.2)
    assert time.monotonic() - begin < RED_WITHIN_S
    return found[check]


def await_green(url: str) -> None:
    """Come back when nothing fails any more; never is for the time-out of the test."""
    while failed(url):
        time.sleep(0.2)


@contextmanager
def without_fork_server(service: int) -> Generator[None]:
    """No fork server of the service with this process id lives for long inside the block."""
    over = threading.Event()

    def hunt() -> None:
        while not over.is_set():
            for child in children(service):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.01)

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        yield
    finally:
        over.set()
        hunter.join()
