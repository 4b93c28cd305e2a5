"""`python -m tests.bench.service_figures`: latencies of requests to a real service, including crashing compiles.

Prints medians. A request is timed at the client, over one loopback connection, from its first byte to the last byte of
the answer; `at the server` is the header `Server-Timing`. Nothing else should run on the machine.
"""

from __future__ import annotations

import gc
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tensorkiln.canonical import canonicalize, graph_digest
from tensorkiln.graph import Graph
from tests.bench.large_graph import large_graph
from tests.bench.workloads import WORKLOADS
from tests.service.bodies import V3, compile_body, encoded, graph
from tests.service.server import Server

Row = tuple[str, float]

REPEATS = 7
REPEATED_REQUESTS = 200
READINGS = 25
DEADLINE_S = 2
MEMORY_MIB = 512


def main() -> None:
    """Measure and print."""
    rows = [*compiling(), *dying(), *reading()]
    width = max(len(name) for name, _ in rows)
    print("\n".join([f"{'figure'.ljust(width)}  median ms", *(f"{name.ljust(width)}  {ms:9.2f}" for name, ms in rows)]))


def compiling() -> Iterator[Row]:
    """Times of a new graph on an empty store, and of the same request again."""
    (softmax,) = (each for each in WORKLOADS if each.name == "softmax 4096x1024")
    wire = json.loads(softmax.write().graph().to_json())
    for target in (V3, "cuda:sm_90"):
        for name, ms in compiling_for(encoded(compile_body(wire, target))):
            yield f"{softmax.name} for {target}, {name}", ms


def compiling_for(body: bytes) -> Iterator[Row]:
    """The times of a first compile and its stages, and of the same request again."""
    first: dict[str, list[float]] = defaultdict(list)
    again: dict[str, list[float]] = defaultdict(list)
    for _ in range(REPEATS):
        with serving() as server:
            request(server, encoded(compile_body()))
            answer, ms = request(server, body)
            first["request to answer"].append(ms)
            first["at the server"].append(at_the_server(answer))
            (program,) = answer.json()["programs"]
            assert program["cache"]["status"] == "miss"
            for stage in program["stages"]:
                first[f"stage {stage['name']}"].append(stage["seconds"] * 1e3)
            for _ in range(REPEATED_REQUESTS // REPEATS):
                answer, ms = request(server, body)
                assert answer.json()["programs"][0]["cache"]["reason"] == "same request"
                again["request to answer"].append(ms)
                again["at the server"].append(at_the_server(answer))
    for name, samples in first.items():
        yield f"first compile: {name}", statistics.median(samples)
    for name, samples in again.items():
        yield f"same request again: {name}", statistics.median(samples)


def dying() -> Iterator[Row]:
    """Times of compiles that crash, hang or exhaust memory, and of a small compile after each."""
    deaths = {
        "segfault": ("segfault: request to typed error", "compile.crashed", 0),
        "hang": (f"hang: typed error after the deadline of {DEADLINE_S} s", "compile.deadline_exceeded", DEADLINE_S),
        "eat_memory": (
            f"growth beyond {MEMORY_MIB} MiB: request to typed error",
            "compile.resource_exhausted",
            0,
        ),
    }
    with serving() as server:
        rows = 1
        for fails, (name, code, expected_s) in deaths.items():
            errors: list[float] = []
            following: list[float] = []
            for _ in range(REPEATS):
                answer, ms = request(server, encoded(compile_body()), fails)
                assert answer.json()["code"] == code
                errors.append(ms - expected_s * 1e3)
                rows += 1
                answer, ms = request(server, encoded(compile_body(graph(rows=rows))))
                assert answer.json()["programs"][0]["cache"]["status"] == "miss"
                following.append(ms)
            yield name, statistics.median(errors)
            yield (
                f"{fails.replace('eat_memory', 'growth')}: first compile of a small graph after it",
                statistics.median(following),
            )


def reading() -> Iterator[Row]:
    """Times of reading a large graph in this process."""
    text = large_graph()
    # As in the fork server: imported objects are not garbage, and a graph has no reference cycles.
    gc.collect()
    gc.freeze()
    gc.disable()
    parsed = Graph.model_validate_json(text)
    canonical = canonicalize(parsed)
    calls: dict[str, Callable[[], object]] = {
        "parse and validate": lambda: Graph.model_validate_json(text),
        "canonicalize": lambda: canonicalize(parsed),
        "digest": lambda: graph_digest(canonical),
        "parse, validate and digest": lambda: (Graph.model_validate_json(text), graph_digest(canonical)),
        "parse, validate, canonicalize and digest": lambda: graph_digest(canonicalize(Graph.model_validate_json(text))),
    }
    for name, call in calls.items():
        yield f"{len(parsed.nodes)} nodes, {name}", median_cpu_ms(call, READINGS)
    gc.enable()


@contextmanager
def serving() -> Generator[Server]:
    """A service with an empty store."""
    with tempfile.TemporaryDirectory() as home:
        settings: dict[str, Any] = {"compile_deadline_s": DEADLINE_S, "compile_memory_mib": MEMORY_MIB}
        with Server(Path(home), fails=True, anew=True, **settings) as server:
            yield server


def request(server: Server, body: bytes, fails: str | None = None) -> tuple[httpx2.Response, float]:
    """The answer of POST /compile, and its milliseconds."""
    began = time.perf_counter()
    answer = server.compile(body, fails)
    taken = time.perf_counter() - began
    assert answer.status_code == (200 if fails is None else 422), answer.text
    return answer, taken * 1e3


def at_the_server(answer: httpx2.Response) -> float:
    return float(answer.headers["Server-Timing"].rpartition("dur=")[2])


def median_cpu_ms(call: Callable[[], object], repeats: int) -> float:
    """Median processor time in ms, which other programs disturb less than wall-clock time."""
    samples: list[float] = []
    for _ in range(repeats):
        gc.collect()
        began = time.process_time()
        call()
        samples.append((time.process_time() - began) * 1e3)
    return statistics.median(samples)


if __name__ == "__main__":
    main()
