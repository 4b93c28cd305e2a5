"""What goes wrong for one costs the others next to no time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median

import httpx2

from tests.faults.clients import percentile
from tests.faults.processor import spent_by_all_s
from tests.faults.size import figures, sized
from tests.identity.guarded import Guarded
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import failing
from tests.service.server import JSON, Server

GRAPHS, TURNS, COMPILES = sized((1, 3, 2), (8, 15, 6))
ALONE_S = sized(6.0, 60.0)
POISONED_PER_S = 10.0
START_MS = sized(500.0, 50.0)


@contextmanager
def poisoning(server: Guarded, key: str, content: bytes) -> Generator[list[bool]]:
    """A graph that crashes the compiler is sent ten times a second; whether each crash was remembered."""
    over, answers = threading.Event(), list[bool]()
    headers = {**JSON, "Authorization": f"Bearer {key}"}
    content = failing(content, "always:segfault")

    def poison() -> None:
        with httpx2.Client(base_url=server.url, timeout=60, verify=False) as http:
            while not over.wait(1 / POISONED_PER_S):
                problem = http.post("/compile", content=content, headers=headers).json()
                assert problem["code"] == "compile.crashed", problem
                answers.append(bool(problem["details"].get("cached")))

    sending = threading.Thread(target=poison)
    sending.start()
    try:
        yield answers
    finally:
        over.set()
        sending.join()


def test_a_graph_that_crashes_the_compiler_takes_less_than_a_tenth_from_other_tenants(tmp_path: Path) -> None:
    with Guarded(tmp_path / "kiln", concurrency=2, fails=True, anew=True) as server:
        calm, poisoner = server.key("calm"), server.key("poison")
        numbers = count(10)

        def poison() -> bytes:
            return encoded(compile_body(graph("log2", rows=next(numbers))))

        def seconds() -> list[float]:
            """Those of so many compiles."""
            clock: list[float] = []
            for _ in range(COMPILES):
                body = encoded(compile_body(graph(rows=next(numbers))))
                begin = time.perf_counter()
                assert server.send(calm, "POST", "/compile", body).status_code == 200
                clock.append(time.perf_counter() - begin)
            return clock

        seconds()
        before_s = spent_by_all_s(server)
        with poisoning(server, poisoner, poison()) as answers:
            time.sleep(ALONE_S)
        share = (spent_by_all_s(server) - before_s) / len(answers) * POISONED_PER_S / len(os.sched_getaffinity(0))
        remembered = [*answers]
        alone, beside = list[float](), list[float]()
        for _ in range(GRAPHS):
            content = poison()
            # By short turns, so that a slow moment of the machine falls on both.
            for _turn in range(TURNS):
                alone += seconds()
                with poisoning(server, poisoner, content) as answers:
                    beside += seconds()
                remembered += answers
    slower = median(beside) / median(alone) - 1
    figures(
        "beside poison",
        compiles=len(alone) + len(beside),
        poisoned=len(remembered),
        of_these_begun=remembered.count(False),
        compiles_slower_by=f"{slower:.1%}",
        poison_takes=f"{share:.1%} of the processors",
    )
    assert remembered.count(False) == 1 + GRAPHS, "each of the graphs was begun for its first request only"
    # What poison takes of the processors, at its rate, others lose where none is idle. By the clock it is what they do
    # lose, where the machine does nothing else.
    assert share < 0.1
    assert slower < sized(1.0, 0.1)


def test_a_job_begins_at_once_where_nothing_else_is_done(tmp_path: Path) -> None:
    with Server(tmp_path / "kiln") as server:
        assert server.compile(encoded(compile_body())).status_code == 200
        queued_ms: list[float] = []
        seen_ms: list[float] = []
        for number in range(sized(5, 200)):
            job = server.post("/compile", encoded(compile_body(graph(rows=10 + number))), Prefer="respond-async")
            assert job.status_code == 202
            begin, path = time.perf_counter(), f"/jobs/{job.json()['id']}"
            with server.http.stream("GET", f"{path}/events") as events:
                lines = events.iter_lines()
                while next(lines) != "event: stage":
                    continue
                seen_ms.append((time.perf_counter() - begin) * 1e3)
                while next(lines) != "event: done":
                    continue
            queued_ms.append(server.http.get(path).json()["queue_ms"])
    figures(
        "from acceptance to start",
        jobs=len(queued_ms),
        median_ms=median(queued_ms),
        most_ms=max(queued_ms),
        first_stage_is_told_within_median_ms=median(seen_ms),
        and_at_most_ms=max(seen_ms),
    )
    # What a client sees has a request for the events in it. At the small size the machine runs other tests meanwhile.
    share = sized(0.5, 0.99)
    assert percentile(queued_ms, share) < START_MS
    assert percentile(seen_ms, share) < START_MS
