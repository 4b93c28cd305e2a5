"""How fast programs are on this GPU: `python -m tests.gpu.bench FOLDER`, a folder of `tests.gpu.make_bundles`.

Kernels are timed by events on the device, and the median of the runs is taken. Beside it: what the compiler estimated,
the bytes of inputs and outputs, each counted once, against a copy within the device, and where PyTorch is installed its
eager time for the same by events around several calls.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tensorkiln.expr import evaluate
from tensorkiln.program import Program
from tensorkiln.runtime.cuda import Driver, open_driver
from tensorkiln.runtime.item_profile import ItemProfile

from .benches import BENCHES, NETWORKS, Bench
from .cases import Array, Symbols

COPIED = 1 << 29
"""Bytes: half a GiB, more than any cache holds."""
CALLS = 10


@dataclass(frozen=True)
class Figures:
    """Of one call: bytes of inputs and outputs, each item as the median of the runs, and PyTorch's nanoseconds or 0."""

    name: str
    moved: int
    items: Sequence[ItemProfile]
    flops: int = 0
    torch_ns: float = 0

    @property
    def ns(self) -> int:
        """Nanoseconds of all items."""
        return sum(item.ns for item in self.items)

    @property
    def estimate_ns(self) -> int:
        """Nanoseconds that the compiler estimated."""
        return sum(item.estimate_ns for item in self.items)


def copy_bandwidth(driver: Driver, runs: int, size: int = COPIED) -> float:
    """Bytes per nanosecond of a copy of `size` bytes within the device, bytes read and bytes written."""
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


def measure(name: str, program: Program, arrays: Sequence[Array], symbols: Symbols, runs: int) -> Figures:
    """The program's own figures."""
    compiled = program.compiled
    variables = [binding.var for binding in compiled.inputs]
    bound = program.bind(dict(zip(variables, arrays, strict=True)))
    outputs = [compiled.buffers[binding.buffer] for binding in compiled.outputs]
    moved = sum(array.nbytes for array in arrays) + sum(evaluate(each.size_bytes, symbols) for each in outputs)
    profiles = [bound.profile(**symbols) for _ in range(runs + 1)][1:]
    items = [sorted(run, key=lambda item: item.ns)[runs // 2] for run in zip(*profiles, strict=True)]
    return Figures(name, moved, items)


def network_arrays(program: Program) -> list[Array]:
    """Standard normal numbers for the inputs of a network, which has no symbols."""
    generator = np.random.default_rng(0)
    buffers = [program.compiled.buffers[binding.buffer] for binding in program.compiled.inputs]
    shapes = [tuple(evaluate(dim, {}) for dim in buffer.shape) for buffer in buffers]
    return [
        (0.05 * generator.standard_normal(shape)).astype(buffer.dtype.numpy)
        for shape, buffer in zip(shapes, buffers, strict=True)
    ]


def torch_ns(bench: Bench, arrays: Sequence[Array], runs: int) -> float:
    """Nanoseconds of a call in PyTorch, the median of runs of several calls."""
    import torch  # type: ignore[import-not-found]

    tensors: list[Any] = []
    for array in arrays:
        is_bfloat = array.dtype.name == "bfloat16"
        tensor = torch.from_numpy(array.view(np.int16) if is_bfloat else array).cuda()
        tensors.append(tensor.view(torch.bfloat16) if is_bfloat else tensor)
    bench.torch(*tensors)
    times: list[float] = []
    for _ in range(runs):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(CALLS):
            bench.torch(*tensors)
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) * 1e6 / CALLS)
    return median(times)


def line(figures: Figures, copied: float) -> str:
    """One row of the table."""
    ns = max(figures.ns, 1)
    peer = f"{figures.torch_ns / 1e3:9.1f} {figures.torch_ns / ns:6.2f}" if figures.torch_ns else f"{'':16}"
    rate = figures.moved / ns
    flops = f"{figures.flops / ns / 1e3:7.2f}" if figures.flops else f"{'':7}"
    return (
        f"{figures.name:22} {len(figures.items):5} {ns / 1e3:10.1f} {figures.estimate_ns / 1e3:10.1f} "
        f"{rate:8.0f} {rate / copied:6.0%} {flops} {peer}"
    )


HEAD = f"{'':22} {'items':>5} {'us':>10} {'estimate':>10} {'GB/s':>8} {'copy':>6} {'TFLOP/s':>7} {'torch us':>9} ratio"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.bench", description="Times of programs on this GPU.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--items", action="store_true", help="every item of a program, too")
    options = parser.parse_args()
    driver, runs = open_driver(), int(options.runs)
    copied = copy_bandwidth(driver, runs)
    print(f"{driver.properties.name}: a copy moves {copied:.0f} GB/s")
    print(HEAD)
    for name, bench in [
        *((bench.case.name, bench) for bench in BENCHES),
        *((f"bench_{name}", None) for name in NETWORKS),
    ]:
        program = Program.from_bundle(options.folder / f"{name}.kiln")
        symbols = bench.case.calls[0] if bench else {}
        arrays = bench.case.inputs(bench.case.graph(), symbols, 0) if bench else network_arrays(program)
        figures = measure(name, program, arrays, symbols, runs)
        if bench and find_spec("torch"):
            figures = Figures(name, figures.moved, figures.items, bench.flops, torch_ns(bench, arrays, runs))
        print(line(figures, copied), flush=True)
        for item in figures.items if options.items else ():
            print(f"    {item.name:40} {item.ns / 1e3:10.1f} {item.estimate_ns / 1e3:10.1f}")


if __name__ == "__main__":
    main()
