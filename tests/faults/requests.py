"""What the fault tests send to a farm, and how they wait for it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from typing import Any

import httpx2

from tests.farm.topology import Farm
from tests.faults.chain import chain
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import failing
from tests.service.server import JSON

ENDED = ("done", "failed", "cancelled")

HTTP = httpx2.Client(verify=False, timeout=120, limits=httpx2.Limits(max_keepalive_connections=0))
"""Each request has a connection of its own: a service that was replaced is not asked on one of its predecessor's."""


def body(number: int, op: str = "exp2") -> bytes:
    """A request that differs from every other with another number."""
    return encoded(compile_body(graph(op, rows=number + 1)))


def slow_body(number: int, length: int = 600) -> bytes:
    """A request of about so many nodes, whose compile takes long enough to be met at it."""
    return encoded(compile_body(chain(number + 1, length // 4)))


def post(url: str, content: bytes, fails: str | None = None, **headers: str) -> httpx2.Response:
    """One POST /compile on a connection of its own."""
    named = {**JSON, **headers}
    content = content if fails is None else failing(content, fails)
    return HTTP.post(f"{url}/compile", content=content, headers=named)


def answered(url: str, content: bytes, fails: str | None = None, **headers: str) -> httpx2.Response:
    """As `post`; as a client does, this comes again when the service is busy."""
    end = time.monotonic() + 60
    while (answer := post(url, content, fails, **headers)).status_code == 503 and time.monotonic() < end:
        time.sleep(int(answer.headers["Retry-After"]))
    return answer


def accept(url: str, content: bytes, fails: str | None = None) -> str:
    """The id of a job, which is accepted."""
    answer = answered(url, content, fails, Prefer="respond-async")
    assert answer.status_code in (200, 202), answer.text
    return answer.json()["id"]


def job(urls: Iterable[str], identifier: str) -> dict[str, Any]:
    """A job as the first service tells that answers."""
    for url in urls:
        try:
            answer = HTTP.get(f"{url}/jobs/{identifier}")
        except httpx2.TransportError:
            continue
        if answer.status_code == 200:
            return answer.json()
    return {"state": "unknown"}


def ended(urls: Iterable[str], identifier: str, seconds: float = 120.0, every_s: float = 0.1) -> dict[str, Any]:
    """A job once it has ended; as it is after so many seconds otherwise."""
    urls, end = list(urls), time.monotonic() + seconds
    while (found := job(urls, identifier))["state"] not in ENDED and time.monotonic() < end:
        time.sleep(every_s)
    return found


def claimers(farm: Farm, before: float) -> list[str]:
    """The names of the workers that have begun an order since that time and have not ended it."""
    names: list[str] = []
    for path in farm.store.glob("farm/*/claims/*"):
        with contextlib.suppress(FileNotFoundError):
            # Of a file that is being written the name has a # in it.
            if "#" not in path.name and path.stat().st_mtime >= before:
                names.append(path.read_text().partition('"worker":"')[2].partition('"')[0])
    return names


def begun(farm: Farm, content: bytes, fails: str) -> str:
    """The id of a compile job, sent to the first service, that a worker has begun."""
    since = time.time()
    job = accept(farm.urls[0], content, fails)
    while not claimers(farm, since):
        time.sleep(0.05)
    return job
