"""`kiln run`: compile a graph for this machine or load a bundle, run it, and say where the time went."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..runtime.profile import Profile
from .arrays import write_arrays
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
from .out_file import out_file
from .profile_table import output_table, profile_table
from .ready import Wanted, ready
from .report import output, reported


def run(
    graph: ProgramFile,
    inputs: Inputs = None,
    symbols: Symbols = None,
    dim: Dim = None,
    seed: Annotated[
        int | None, typer.Option("--random", min=0, help="Draw the missing inputs at random, from this seed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the outputs: .npz, or .npy for a single one.")
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(help="Write the run with the median time as a trace for Perfetto (.json) or a roofline (.svg)."),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Runs to time; the table shows the median.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of one kernel; default: all processors.")] = None,
    fast_math: FastMath = None,
    fusion: Fusion = None,
    schedule: Schedule = None,
    tuned: Tuned = None,
    url: Url = None,
    timeout: TimeoutS = None,
) -> None:
    """Compile a graph for this machine, run it, and print its kernels with their launch sizes and times.

    A .kiln bundle is compiled already, and needs no service.
    """
    with reported() as step, ExitStack() as stack:
        options = compile_options(fast_math=fast_math, fusion=fusion, schedule=schedule, tuned=tuned)
        wanted = Wanted(graph, inputs or [], symbols or [], dim or [], seed, threads, options, url, timeout)
        made = ready(wanted, step, stack)
        step("running")
        results = [np.asarray(result) for result in made.program(*made.arrays, **made.symbols)]
        if out is not None:
            write_arrays(out, results)
        profiles: list[Profile] = []
        for index in range(repeat):
            step(f"timing {index + 1}/{repeat}")
            profiles.append(made.program.profile(*made.arrays, **made.symbols))
        if profile is not None:
            middle = sorted(profiles, key=lambda each: each.ns)[len(profiles) // 2]
            with out_file(profile) as file:
                file.write(middle.rendered(profile.suffix))
    console = output()
    console.print(profile_table(profiles))
    console.print(output_table(results))
