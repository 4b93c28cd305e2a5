"""How much of the GPU's memory bandwidth programs reach: `python -m tests.gpu.bench FOLDER`.

Each program's inputs and output are counted once, and timed by events on the device; the measure is a copy within the
device, counted as bytes read and bytes written. The median of the runs is taken.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

from tensorkiln.expr import evaluate
from tensorkiln.program import Program
from tensorkiln.runtime.cuda import Driver, open_driver
from tests.gpu.cases import BENCHES, Case

COPIED = 1 << 29
"""Bytes: half a GiB, more than any cache holds."""


def copy_bandwidth(driver: Driver, runs: int, size: int = COPIED) -> float:
    """Bytes per nanosecond of a copy of `size` bytes within the device."""
    with driver.scope():
        source, target = driver.allocate(size), driver.allocate(size)
        stream = driver.create_stream()
        start, stop = driver.create_event(timed=True), driver.create_event(timed=True)
        times: list[int] = []
        for _ in range(runs + 1):
            driver.record_event(start, stream)
            driver.copy(target, source, size, stream)
            driver.record_event(stop, stream)
            driver.synchronize(stream)
            times.append(driver.elapsed_ns(start, stop))
        driver.free(source)
        driver.free(target)
        driver.destroy_stream(stream)
    return 2 * size / median(times[1:])


def program_bandwidth(case: Case, program: Program, runs: int) -> float:
    """Bytes per nanosecond of a program's inputs and outputs."""
    graph, symbols = case.graph(), case.calls[0]
    arrays = case.inputs(graph, symbols, 0)
    variables = [binding.var for binding in program.compiled.inputs]
    bound = program.bind(dict(zip(variables, arrays, strict=True)))
    outputs = [program.compiled.buffers[binding.buffer] for binding in program.compiled.outputs]
    moved = sum(array.nbytes for array in arrays) + sum(evaluate(each.size_bytes, symbols) for each in outputs)
    times = [sum(item.ns for item in bound.profile(**symbols)) for _ in range(runs + 1)]
    return moved / median(times[1:])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.bench", description="Bandwidth of programs.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    driver, runs = open_driver(), int(options.runs)
    copied = copy_bandwidth(driver, runs)
    print(f"{driver.properties.name}: a copy moves {copied:.0f} GB/s")
    for case in BENCHES:
        reached = program_bandwidth(case, Program.from_bundle(options.folder / f"{case.name}.kiln"), runs)
        print(f"{case.name}: {reached:.0f} GB/s, {reached / copied:.0%} of a copy", flush=True)


if __name__ == "__main__":
    main()
