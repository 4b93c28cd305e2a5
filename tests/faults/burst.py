"""A burst keeps every processor busy: `python -m tests.faults.burst [GRAPHS]` prints how much of them it gets.

The pure time of the compiles is that of the compiler alone: one graph after the other, in one process for each
processor, all of them at once, which have compiled before. Every second graph is compiled so before the burst and the
others after it: a machine whose speed drifts is as fast in the middle of the two, about. Nothing else should run on it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tensorkiln.build import Builder, relu, softmax
from tensorkiln.graph import Graph
from tests.faults.clients import send
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server

FULL = 200
CLIENTS = 16
_PURE = """
import sys, time
from passes.compile import CompileRequest, compile_request
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tests.faults.burst import layers
warm_up, first, step = map(int, sys.argv[1:])
graphs = [layers(number) for number in (warm_up, *range(first, warm_up, step))]
seconds = []
for graph in graphs:
    began = time.perf_counter()
    compile_request(CompileRequest(graph=graph, target=Target.parse("cpu:x86-64-v3"), options=CompileOptions()))
    seconds.append(time.perf_counter() - began)
print(sum(seconds[1:]))
"""


@dataclass(frozen=True, slots=True)
class Burst:
    """Seconds that the compiles take alone, all together, and that the burst took on so many processors."""

    graphs: int
    processors: int
    pure_s: float
    took_s: float

    @property
    def share(self) -> float:
        """Pure time of the compiles in the time that the processors had; 1 where nothing else takes any."""
        return self.pure_s / (self.took_s * self.processors)

    def shown(self) -> str:
        """One line."""
        return (
            f"{self.graphs} graphs: {self.pure_s:.1f} s of pure compiling, answered in {self.took_s:.1f} s on "
            f"{self.processors} processors, which is {self.share:.0%} of what they could do"
        )


def layers(number: int) -> Graph:
    """softmax(relu(x @ up) @ down), as long and as wide as no other."""
    builder = Builder(f"layers{number}")
    width = 64 + 8 * (number % 20)
    x = builder.input("float32", (builder.symbol("n", 1, 1024 + number), width))
    up, down = builder.input("float32", (width, 4 * width)), builder.input("float32", (4 * width, width))
    builder.output(softmax(relu(x @ up) @ down))
    return builder.graph()


def pure_s(numbers: range, processors: int) -> float:
    """Seconds that the compiler takes for the graphs of these numbers, in a warm process for each processor."""
    shares = [numbers[first::processors] for first in range(processors)]
    commands = [[sys.executable, "-c", _PURE, *map(str, (numbers.stop, each.start, each.step))] for each in shares]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    return sum(float(process.communicate()[0]) for process in running)


def measure(server: Server, graphs: int) -> Burst:
    """Half of the compiles alone, the burst on a running service, then the other half alone."""
    bodies = bodies_of(graphs)
    processors = len(os.sched_getaffinity(0))
    before = pure_s(range(0, graphs, 2), processors)
    took = burst(server, bodies)
    after = pure_s(range(1, graphs, 2), processors)
    return Burst(graphs, processors, before + after, took)


def burst(server: Server, bodies: list[bytes]) -> float:
    """Seconds in which a running service compiles all of these."""
    answers, took = send(server.url, bodies, CLIENTS)
    assert [answer.status for answer in answers] == [200] * len(bodies)
    assert not any(b'"status":"hit"' in answer.content for answer in answers)
    return took


def bodies_of(graphs: int) -> list[bytes]:
    """Requests to compile so many graphs."""
    return [encoded(compile_body(json.loads(layers(number).to_json()))) for number in range(graphs)]


def main() -> int:
    """The exit status."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else FULL
    with tempfile.TemporaryDirectory() as home, Server(Path(home) / "kiln", anew=True, queue=2 * count) as server:
        print(measure(server, count).shown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
