"""Requests that are refused leave nothing behind in the process that refused them, however large they were."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import httpx2
import pytest

from service.http.coded_bodies import zstd
from tests.faults.memory import forget_peak, peak_mib, resident_mib
from tests.faults.size import sized
from tests.service.bodies import compile_body, encoded
from tests.service.server import JSON, Server

BODY_MIB = 57
AT_ONCE = 8
MAX_GROWN_MIB = 355
MAX_LEFT_MIB = 160
LEFT_S = sized(60, 10)
"""So long they may leave something yet; at the small size, jobs among them on a machine that runs other tests."""
ASYNC = {"Prefer": "respond-async"}
ROUTES = {
    "/compile": ("/compile", {}),
    "/compile as jobs": ("/compile", ASYNC),
    "/validate": ("/validate", {}),
    "/explain": ("/explain", {}),
    "/jobs:batch": ("/jobs:batch", {}),
    "plain": ("/compile", {}),
}


BLOCK = secrets.token_hex(512 << 10).encode()
"""A body swells less than it may: it is this, again and again."""


def body(number: int) -> bytes:
    return b'{"graph":{"x":"%d%b"}}' % (number, BLOCK * BODY_MIB)


@cache
def compressed(number: int) -> bytes:
    """The body for all routes, as to compress it takes longer than to read it."""
    return zstd.compress(body(number))


def left_mib(pid: int) -> tuple[float, float]:
    """What a process has in memory, once that is little or after LEFT_S, and after how many seconds."""
    begin = time.monotonic()
    while (left := resident_mib(pid)) > MAX_LEFT_MIB and time.monotonic() - begin < LEFT_S:
        time.sleep(0.1)
    return left, time.monotonic() - begin


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all routes: what one of them left would be there for the next."""
    with Server(tmp_path_factory.mktemp("bodies"), anew=True) as running:
        yield running


# At the small size one for each way that a body takes: `/compile` and `/explain` read theirs as `/validate` does.
@pytest.mark.parametrize("case", sized(("/compile as jobs", "/validate", "/jobs:batch", "plain"), tuple(ROUTES)))
def test_refused_bodies_of_57_mib_leave_nothing(case: str, server: Server, size: Callable[[int, int], int]) -> None:
    """`plain` is sent without a coding."""
    route, headers = ROUTES[case]
    with ThreadPoolExecutor(AT_ONCE) as senders:

        def send(number: int) -> int:
            coded = {} if case == "plain" else {"Content-Encoding": "zstd"}
            with httpx2.Client(base_url=server.url, timeout=120) as client:
                content = compressed(number) if coded else body(number)
                return client.post(route, content=content, headers={**JSON, **coded, **headers}).status_code

        server.post("/validate", b"{}")
        before = resident_mib(server.pid)
        forget_peak(server.pid)
        statuses = Counter(senders.map(send, range(size(8, 200))))
        grown = peak_mib(server.pid) - before
        left, seconds = left_mib(server.pid)
        print(f"{case}: {grown:.0f} MiB more, {left:.0f} MiB after {seconds:.1f} s, {dict(statuses)}")
        assert statuses.keys() <= {202, 400, 422, 503}
        assert len(statuses.keys() - {503}) == 1
        assert grown <= MAX_GROWN_MIB
        assert left <= MAX_LEFT_MIB
        assert server.http.get("/readyz").status_code == 200


def test_processes_that_send_too_much_leave_nothing(tmp_path: Path, size: Callable[[int, int], int]) -> None:
    with Server(tmp_path / "kiln", fails=True, anew=True) as server:
        for _ in range(size(4, 20)):
            assert server.compile(encoded(compile_body()), "prepare:output").status_code == 422
        left, seconds = left_mib(server.pid)
        print(f"{left:.0f} MiB {seconds:.1f} s after the last")
        assert left <= MAX_LEFT_MIB
