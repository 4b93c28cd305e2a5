"""One tenant floods; another has its answers all the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.faults.size import FULL, figures, sized
from tests.identity.guarded import Guarded, refusal
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import failing

FLOOD: Final = sized(1000, 10_000)
CLIENTS: Final = 24
# In one round, of which there are as many as fit beside the whole flood at full size.
HITS, COMPILES = sized((5, 2), (40, 12))
# Seconds; at the small size, room for a machine of two cores that runs other tests beside this one.
HIT_P95_S: Final = sized(1.0, 0.05)
COMPILE_P95_S: Final = sized(5.0, 1.0)
# On one that is busier yet, what counts is how many compiles of the flood somebody waits for: it has 16 under way.
HIT_COMPILES: Final = sized(4, 0)
COMPILE_COMPILES: Final = sized(8, 0)

# A client that costs little, so that the machine is the service's.
_FLOODER: Final = """
import http.client, os, sys, threading, time
from collections import Counter
from urllib.parse import urlsplit
from tests.service.bodies import compile_body, encoded, graph
url, key, total, clients = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
numbers, seen, stop = iter(range(total)), Counter(), threading.Event()
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
def work():
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    for number in numbers:
        body = encoded(compile_body(graph(rows=100 + number)))
        status = 429
        while status == 429 and not stop.is_set():
            connection.request("POST", "/compile", body, headers)
            answer = connection.getresponse()
            answer.read()
            status = answer.status
            seen[status] += 1
            if status == 429:
                time.sleep(0.1)
        if stop.is_set():
            return
threads = [threading.Thread(target=work) for _ in range(clients)]
[each.start() for each in threads]
print("ready", flush=True)
threading.Thread(target=lambda: (os.read(0, 1), stop.set()), daemon=True).start()
[each.join() for each in threads]
print(", ".join(f"{times} x {status}" for status, times in sorted(seen.items())))
"""


@contextmanager
def flooding(server: Guarded, key: str) -> Generator[subprocess.Popen[str]]:
    """Another process sends different compiles as fast as they are answered, and comes back soon when it may not.

    It ends when all have been answered, or with the block.
    """
    command = [sys.executable, "-c", _FLOODER, server.url, key, str(FLOOD), str(CLIENTS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1)
        try:
            yield process
        finally:
            process.stdin.close()
            answers = process.stdout.read().strip()
            print(f"the flood: {answers}")
    assert not FULL or answers.startswith(f"{FLOOD} x 200")


def p95(samples: list[float]) -> float:
    return sorted(samples)[int(0.95 * len(samples))]


def measured(times: int, send: Callable[[], httpx2.Response]) -> list[float]:
    samples: list[float] = []
    for _ in range(times):
        begin = time.perf_counter()
        answer = send()
        samples.append(time.perf_counter() - begin)
        assert answer.status_code == 200, answer.text
    return samples


@pytest.mark.faults
def test_a_flood_of_one_tenant_does_not_keep_another_waiting(home: Path) -> None:
    with Guarded(home, concurrency=2, tenant_in_flight=16) as server:
        flooder, key = server.key("flood"), server.key("calm")
        stored = encoded(compile_body())
        numbers = count()

        def same_bytes() -> httpx2.Response:
            return server.send(key, "POST", "/compile", stored)

        def same_action() -> httpx2.Response:
            return server.send(key, "POST", "/compile", encoded(compile_body(graph(name=f"g{next(numbers)}"))))

        def compile_another() -> httpx2.Response:
            return server.send(key, "POST", "/compile", encoded(compile_body(graph(bound=100 + next(numbers)))))

        kinds = {
            "repeated requests": (HITS, same_bytes),
            "hits": (HITS, same_action),
            "compiles": (COMPILES, compile_another),
        }
        same_bytes()
        alone = {kind: measured(times, send) for kind, (times, send) in kinds.items()}
        busy = {kind: list[float]() for kind in kinds}
        with flooding(server, flooder) as flood:
            while not busy["compiles"] or (FULL and flood.poll() is None):
                for kind, (times, send) in kinds.items():
                    busy[kind] += measured(times, send)
        # What a compile takes, whose pace the other tests on the machine set before and after.
        alone["compiles"] += measured(COMPILES, compile_another)
        compile_s = p95(alone["compiles"])
        for kind, samples in busy.items():
            figures(
                f"{kind} beside {CLIENTS} clients that flood",
                measured=len(samples),
                p95_ms=p95(samples) * 1e3,
                alone_ms=p95(alone[kind]) * 1e3,
            )
        hit_s = max(p95(busy["repeated requests"]), p95(busy["hits"]))
        assert hit_s < max(HIT_P95_S, HIT_COMPILES * compile_s)
        assert p95(busy["compiles"]) < max(COMPILE_P95_S, COMPILE_COMPILES * compile_s)


def test_requests_over_a_tenants_limit_get_retry_after(home: Path) -> None:
    with Guarded(home, concurrency=2, tenant_in_flight=2, fails=True, compile_deadline_s=20) as server:
        key, other = server.key("greedy"), server.key("modest")
        with hanging(server, key, "hang", 2):
            while len(server.jobs("compile")) < 2:
                time.sleep(0.05)
            refused = server.send(key, "POST", "/compile", encoded(compile_body()))
            assert refusal(refused) == (429, "rate.limited")
            assert refused.headers["retry-after"] == "1"
            problem = refused.json()
            assert problem["retryable"] is True
            assert problem["details"] == {"limit": "in_flight", "maximum": 2, "actual": 2, "retry_after_s": 1}
            assert server.send(other, "POST", "/validate", encoded({"graph": graph()})).status_code == 200


def test_requests_of_one_tenant_that_take_long_to_read_leave_a_place_to_the_others(home: Path) -> None:
    with Guarded(home, concurrency=2, fails=True, compile_deadline_s=10) as server:
        key, other = server.key("slow"), server.key("quick")
        assert server.send(other, "POST", "/compile", encoded(compile_body())).status_code == 200
        with hanging(server, key, "prepare:hang", 3):
            while len(held := server.jobs("prepare")) < 2:
                time.sleep(0.05)
            renamed = server.send(other, "POST", "/compile", encoded(compile_body(graph(name="another"))))
            assert renamed.json()["programs"][0]["cache"]["status"] == "hit"
            assert {*held} <= {*server.jobs("prepare")}


@contextmanager
def hanging(server: Guarded, key: str, how: str, requests: int) -> Generator[None]:
    """Compiles that fail so are under way in the block, at whose end the service is killed."""

    def hang(rows: int) -> None:
        body = failing(encoded(compile_body(graph(rows=rows))), how)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        with suppress(httpx2.TransportError), httpx2.Client(base_url=server.url, timeout=60, verify=False) as http:
            http.post("/compile", content=body, headers=headers)

    threads = [threading.Thread(target=hang, args=(rows,)) for rows in range(1, 1 + requests)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        server.stop(signal.SIGKILL)
        for thread in threads:
            thread.join()


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service where a tenant has little under way, and what it has spent is held against it for long."""
    settings = {"concurrency": 1, "tenant_in_flight": 3, "tenant_window_s": 3600}
    with Guarded(tmp_path_factory.mktemp("strict"), **settings) as running:
        yield running


@pytest.mark.xdist_group("strict")
def test_a_tenant_that_has_spent_its_seconds_still_gets_what_is_stored(strict: Guarded) -> None:
    strict.tenant("poor", cpu_s=0.001)
    strict.tenant("rich", cpu_s=0)
    key = strict.key("poor")
    stored, other = encoded(compile_body()), encoded(compile_body(graph(rows=5)))
    assert strict.send(key, "POST", "/compile", stored).status_code == 200
    # What was spent is known once the processes have ended, which nobody waits for.
    begin, refused = time.monotonic(), strict.send(key, "POST", "/compile", other)
    for rows in range(100, 200):
        if refused.status_code != 200 or time.monotonic() - begin > 10:
            break
        refused = strict.send(key, "POST", "/compile", encoded(compile_body(graph(rows=rows))))
    assert refusal(refused) == (429, "rate.limited")
    details = refused.json()["details"]
    assert details["limit"] == "cpu_s"
    assert details["actual"] >= details["maximum"] == 0.001
    assert int(refused.headers["retry-after"]) == details["retry_after_s"] > 60
    assert strict.send(key, "POST", "/compile", stored).status_code == 200
    assert strict.send(strict.key("rich"), "POST", "/compile", other).status_code == 200


@pytest.mark.xdist_group("strict")
def test_jobs_of_a_flood_are_refused_when_they_are_sent_and_not_when_they_are_done(strict: Guarded) -> None:
    key = strict.key("flood")
    sent = [
        strict.send(key, "POST", "/compile", encoded(compile_body(graph(rows=rows))), Prefer="respond-async")
        for rows in range(2, 22)
    ]
    statuses = Counter(answer.status_code for answer in sent)
    assert set(statuses) <= {200, 202, 429}
    assert statuses[202]
    for answer in sent:
        if answer.status_code == 202:
            path = f"{answer.headers['location']}"
            while (state := strict.send(key, "GET", path).json()["state"]) in ("queued", "running"):
                time.sleep(0.02)
            assert state == "done"
