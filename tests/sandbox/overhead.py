"""What the sandbox costs a compile: `python -m tests.sandbox.overhead [RUNS]`.

Each round compiles the same small graph four times, in an order that rotates: in this process, in a fork of this
process that nothing confines, in a job at the level `process`, and in a job at the strongest level that the kernel
offers. The differences of a round are paired, so that what else the machine does falls on all four. On a machine that
is busy, look at the processor time: it has what the fork server does as well, and nobody else's work.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from pydantic_core import from_json

from passes.compile import CompileRequest, compile_request
from service.action import Action
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.levels import Wall
from service.sandbox.sandbox import Sandbox
from service.sandbox.spawn import COMPILING
from service.sandbox.tasks.rehearsal import rehearse
from tensorkiln.build import Builder, softmax
from tensorkiln.canonical import canonicalize, graph_digest
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.spec.abi import ABI_VERSION
from tensorkiln.target import Target

LIMITS = Limits(deadline_s=60.0, memory_mib=2048, file_mib=128)


def request() -> Message:
    """The request of a compile job, as the service writes it."""
    builder = Builder("overhead")
    x, w = builder.input("float32", (32, 64)), builder.input("float32", (64, 48))
    builder.output(softmax(x @ w))
    canonical = canonicalize(builder.graph())
    target = Target.parse("cpu:x86-64-v3").model_dump(mode="json")
    options = CompileOptions().model_dump(mode="json")
    action = Action(
        abi=ABI_VERSION, build_id="", graph=graph_digest(canonical), options=options, salt="", schema=1, target=target
    )
    header = {"digest": action.digest, "target": target, "options": options, "provenance": {}}
    return Message({**header, "cache": {"status": "miss", "reason": ""}}, {"graph": canonical.graph.to_json().encode()})


def compile_here(message: Message) -> None:
    """The work of the job, without the job."""
    compilation = compile_request(
        CompileRequest(
            graph=Graph.model_validate(from_json(message.parts["graph"])),
            target=Target.model_validate(message.header["target"]),
            options=CompileOptions.model_validate(message.header["options"]),
        )
    )
    compilation.program.model_dump_json()


async def in_this_process(message: Message) -> None:
    """Nothing between the caller and the compiler."""
    compile_here(message)


async def in_a_fork(message: Message) -> None:
    """A fork, which pays for its pages, and nothing else."""
    child = os.fork()
    if child == 0:
        compile_here(message)
        os._exit(0)
    os.waitpid(child, 0)


def processor_s(fork_server: int | None) -> float:
    """Processor time so far of this process, of those that it forked, and of a fork server with its jobs."""
    forked = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() + forked.ru_utime + forked.ru_stime
    if fork_server is not None:
        fields = Path(f"/proc/{fork_server}/stat").read_text().rpartition(")")[2].split()
        seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return seconds


async def measure(runs: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Seconds of each round by way of compiling, and processor time of a compile by way of compiling."""
    rehearse()
    message = request()
    weak, strong = Sandbox((COMPILING,), wall=Wall.PROCESS), Sandbox((COMPILING,), wall=Wall.AUTO)
    levels = [(await sandbox.start()).level for sandbox in (weak, strong)]

    def job(sandbox: Sandbox) -> Callable[[Message], Awaitable[Any]]:
        return lambda message: sandbox.run("compile", message, LIMITS)

    ways: dict[str, tuple[Callable[[Message], Awaitable[Any]], int | None]] = {
        "in this process": (in_this_process, None),
        "in a bare fork": (in_a_fork, None),
        f"job, {levels[0]}": (job(weak), weak.pid),
        f"job, {levels[1]}": (job(strong), strong.pid),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    processor: dict[str, float] = dict.fromkeys(ways, 0.0)
    try:
        warm = min(3, runs)
        for number in range(runs + warm):
            names = list(ways)
            first = number % len(names)
            for name in names[first:] + names[:first]:
                way, fork_server = ways[name]
                used, begun = processor_s(fork_server), time.perf_counter()
                await way(message)
                took = time.perf_counter() - begun
                await asyncio.sleep(0.05)  # the job is reaped
                if number >= warm:
                    seconds[name].append(took)
                    processor[name] += (processor_s(fork_server) - used) / runs
    finally:
        await asyncio.gather(weak.close(), strong.close())
    return seconds, processor


def main() -> None:
    """Print the medians and the paired differences."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seconds, processor = asyncio.run(measure(runs))
    base = seconds["in this process"]
    for name, each in seconds.items():
        over = sorted(mine - other for mine, other in zip(each, base, strict=True))
        print(
            f"{name:24} p50 {median(each) * 1e3:7.2f} ms; beyond the first way p50 {median(over) * 1e3:6.2f} ms, "
            f"p95 {over[int(len(over) * 0.95)] * 1e3:6.2f} ms; processor {processor[name] * 1e3:6.1f} ms each"
        )
    *_, weak, strong = seconds.values()
    print(f"between the levels: p50 {median(b - a for a, b in zip(weak, strong, strict=True)) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
