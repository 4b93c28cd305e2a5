"""`kiln bench`: how long the calls of a program take, and how much of the machine they use."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from ..runtime.machine import Machine, measured, rate_text
from ..runtime.profile import ItemProfile, Profile
from ..runtime.threads import available_processors
from .options import (
    Dim,
    FastMath,
    Fusion,
    Inputs,
    ProgramFile,
    Schedule,
    Symbols,
    TimeoutS,
    Tuned,
    Url,
    compile_options,
)
from .profile_table import duration
from .ready import Ready, Wanted, ready
from .report import Step, output, reported

_LOOP: Final = "loop"
"""Loops have a time but no rates: the work of their turns is not counted."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Times in nanoseconds: the median, the least, and the spread between the quartiles; work in bytes and operations.

    `of_machine` is the least time that the machine could take for the work, in parts of the median; None if its peak is
    not known.
    """

    name: str
    median_ns: float
    least_ns: float
    spread_ns: float
    flops: int
    bytes: int
    of_machine: float | None

    @property
    def gb_per_s(self) -> float:
        return self.bytes / self.median_ns if self.median_ns else 0.0

    @property
    def gflop_per_s(self) -> float:
        return self.flops / self.median_ns if self.median_ns else 0.0


def bench(
    graph: ProgramFile,
    inputs: Inputs = None,
    symbols: Symbols = None,
    dim: Dim = None,
    seed: Annotated[int, typer.Option("--random", min=0, help="Seed for the missing inputs.")] = 0,
    repeat: Annotated[int, typer.Option(min=3, help="Timed calls, after a tenth as many calls to warm up.")] = 50,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of one kernel; default: all processors.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    fast_math: FastMath = None,
    fusion: Fusion = None,
    schedule: Schedule = None,
    tuned: Tuned = None,
    url: Url = None,
    timeout: TimeoutS = None,
) -> None:
    """Time the calls of a program and its kernels, and compare them with the peak of this machine or of its GPU.

    Operations and bytes are counted by the compiler. The peak is measured with copies and matrix products of
    NumPy on the same number of threads; that of a GPU follows from its clocks.
    """
    with reported() as step, ExitStack() as stack:
        options = compile_options(fast_math=fast_math, fusion=fusion, schedule=schedule, tuned=tuned)
        wanted = Wanted(graph, inputs or [], symbols or [], dim or [], seed, threads, options, url, timeout)
        made = ready(wanted, step, stack)
        calls, profiles = _times(made, repeat, step)
        is_gpu = profiles[0].is_gpu
        if not is_gpu:
            step("measuring this machine")
        machine = profiles[0].peak if is_gpu else measured(threads or available_processors())
    rows = [_whole(calls, profiles, machine), *_items(profiles, machine)]
    if as_json:
        typer.echo(json.dumps(_document(rows, machine), indent=2))
    else:
        output().print(_table(rows))
        output().print(_peak(machine, is_gpu=is_gpu))


def _times(made: Ready, repeat: int, step: Step) -> tuple[list[int], list[Profile]]:
    """The times of calls, and profiles of further calls, since timing every item makes a call slower."""
    for _ in range(max(1, repeat // 10)):
        made.program(*made.arrays, **made.symbols)
    calls: list[int] = []
    for index in range(repeat):
        step(f"timing {index + 1}/{repeat}")
        start = time.perf_counter_ns()
        for result in made.program(*made.arrays, **made.symbols):
            np.asarray(result)  # of a GPU, it is there when it is on the host
        calls.append(time.perf_counter_ns() - start)
    return calls, [made.program.profile(*made.arrays, **made.symbols) for _ in range(repeat)]


def _whole(calls: Sequence[int], profiles: Sequence[Profile], machine: Machine | None) -> Timed:
    items = profiles[0]
    if any(item.op == _LOOP for item in items):
        return _timed("a call", calls, 0, 0, None)
    flops, moved = sum(item.flops for item in items), sum(item.bytes for item in items)
    # Items run one after the other, so their least times add up.
    least = sum(machine.least_ns(item.flops, item.bytes) for item in items) if machine is not None else None
    return _timed("a call", calls, flops, moved, least)


def _items(profiles: Sequence[Profile], machine: Machine | None) -> list[Timed]:
    return [_item(runs, machine) for runs in zip(*profiles, strict=True)]


def _item(runs: Sequence[ItemProfile], machine: Machine | None) -> Timed:
    name, times, first = runs[0].name or runs[0].op, [run.ns for run in runs], runs[0]
    if first.op == _LOOP:
        return _timed(name, times, 0, 0, None)
    least = machine.least_ns(first.flops, first.bytes) if machine is not None else None
    return _timed(name, times, first.flops, first.bytes, least)


def _timed(name: str, times: Sequence[int], flops: int, moved: int, least_ns: float | None) -> Timed:
    middle = median(times)
    low, _, high = quantiles(times, n=4)
    part = least_ns / middle if least_ns and middle else None
    return Timed(name, middle, min(times), high - low, flops, moved, part)


def _document(rows: Sequence[Timed], machine: Machine | None) -> dict[str, Any]:
    figures = [{**asdict(row), "gb_per_s": row.gb_per_s, "gflop_per_s": row.gflop_per_s} for row in rows]
    return {"call": figures[0], "items": figures[1:], "machine": asdict(machine) if machine is not None else None}


def _peak(machine: Machine | None, *, is_gpu: bool) -> str:
    if machine is None:
        return "the driver of the GPU does not say how fast it is"
    return f"{'the GPU, by its clocks' if is_gpu else 'this machine'}: {machine} of float32"


def _table(rows: Sequence[Timed]) -> Table:
    table = Table("what", "median", "spread", "least", "GB/s", "GFLOP/s", "of the machine")
    for row in rows:
        part = "" if row.of_machine is None else f"{row.of_machine:.0%}"
        rates = (rate_text(row.gb_per_s) if row.bytes else "", rate_text(row.gflop_per_s) if row.flops else "")
        times = (duration(row.median_ns), duration(row.spread_ns), duration(row.least_ns))
        table.add_row(row.name, *times, *rates, part)
    return table
