"""`kiln tune`: time the schedules that the kernels of a graph could have, and keep the fastest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ..bundle import SUFFIX, is_bundle
from ..schedule import KernelItem
from ..sdk import NATIVE, Client
from ..spec import CompiledProgram, Timing, Tuning
from .dims import parse_dims
from .model import read_given
from .options import Dim, FastMath, GraphFile, TimeoutS, Url, compile_options
from .profile_table import duration
from .report import output, reported, shown

_SHOWN_OPS = 4


def tune(
    graph: GraphFile,
    target: Annotated[str, typer.Option("--target", "-t", help="A CPU of the kind that the service runs on.")] = NATIVE,
    bundle: Annotated[
        Path | None,
        typer.Option(help="Write the program with its code into a .kiln file, and its signature beside it."),
    ] = None,
    dim: Dim = None,
    fast_math: FastMath = None,
    url: Url = None,
    timeout: TimeoutS = None,
) -> None:
    """Time the schedules of a graph's kernels on the service's CPU, and compile the graph with the fastest.

    The service stores the measurements: from then on `--tuned prefer` and `--tuned require` use them.
    """
    if bundle is not None and not is_bundle(bundle):
        raise typer.BadParameter(f"{bundle} is not a bundle: give a name that ends with {SUFFIX}.")
    with reported() as step, Client(url, timeout_s=timeout) as client:
        step(f"reading {graph}")
        model, settings = read_given(graph, parse_dims(dim or []), lambda: client)
        settings = settings.with_flags({}, None, compile_options(fast_math=fast_math))
        progress = shown(step, f"tuning {graph.name}", [target])
        program = client.tune(model.graph, target, settings.options, on_progress=progress)
        if bundle is not None:
            step(f"writing {bundle}")
            client.save(program, bundle)
    console, tuning = output(), program.tuning
    assert tuning is not None, "a program that is tuned says by what"
    if tuning.kernels:
        console.print(_table(program, tuning))
    console.print(verdict(tuning))


def _table(program: CompiledProgram, tuning: Tuning) -> Table:
    """One row per kernel with several schedules: the estimated and the least measured time of the schedule picked by
    estimates, and of the fastest.
    """
    operations = [item.operation for item in program.schedule.items]
    kernels = {each.kernel_id: each for each in operations if isinstance(each, KernelItem)}
    table = Table("kernel", "operations", "schedules", "picked by estimates", "estimate", "time", "fastest", "time")
    for kernel in tuning.kernels:
        first, fastest = kernel.candidates[0], kernel.candidates[kernel.picked]
        kinds = [op.kind for op in kernels[kernel.kernel].ops]
        ops = " ".join(kinds[:_SHOWN_OPS]) + (" ..." if len(kinds) > _SHOWN_OPS else "")
        row = (first.strategy, duration(first.estimate_ns), _time(first))
        other = (fastest.strategy, _time(fastest)) if kernel.picked else ("", "")
        table.add_row(str(kernel.kernel), ops, str(len(kernel.candidates)), *row, *other)
    return table


def _time(timing: Timing) -> str:
    return f"{duration(timing.least_ns)} ± {duration(timing.spread_ns)}"


def verdict(tuning: Tuning) -> str:
    """One line with the gain of tuning, or the reason that there is none."""
    where = f"on {tuning.machine}, {tuning.rounds} rounds"
    if not tuning.kernels:
        return f"Nothing to gain {where}: every kernel has only one schedule worth timing."
    if not tuning.faster:
        return f"Nothing to gain {where}: no other schedule of {len(tuning.kernels)} kernels is faster."
    before, after = duration(tuning.before_ns), duration(tuning.after_ns)
    if not tuning.gain:
        return f"Nothing to gain {where}: a call takes {before}, and {after} with the fastest schedule of each kernel."
    share = 1 - tuning.after_ns / tuning.before_ns
    changed = f"{len(tuning.faster)} of {len(tuning.kernels)} kernels have another schedule"
    return f"{share:.1%} less time {where}: a call takes {after} instead of {before}; {changed}."
