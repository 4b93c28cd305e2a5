"""`kiln run`: compile a graph for this machine or load a bundle, run it, and say where the time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..buffers import Binding
from ..bundle import is_bundle
from ..errors import CallInputError, RequestError
from ..expr import evaluate
from ..frontends.solve_symbols import ArgumentSymbols
from ..program import Program
from ..runtime.random_arrays import random_array
from ..sdk import NATIVE, Client
from .arrays import as_dtype, read_arrays, write_arrays
from .dims import parse_dims
from .model import read_given
from .options import FORMATS, Dim, FastMath, Fusion, Schedule, TimeoutS, Tuned, Url, compile_options
from .profile_table import output_table, profile_table
from .report import output, reported, shown


def run(
    graph: Annotated[
        Path,
        typer.Argument(help=f"A graph: {FORMATS}; or a .kiln bundle.", exists=True, dir_okay=False, readable=True),
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Option("--input", "-i", help="A .npy or .npz file; repeatable, in the order of the graph's inputs."),
    ] = None,
    symbols: Annotated[
        list[str] | None,
        typer.Option("--symbol", "-s", help="The value of a symbol that no input says, as n=4; repeatable."),
    ] = None,
    dim: Dim = None,
    seed: Annotated[
        int | None, typer.Option("--random", min=0, help="Make up the inputs that are not given, from this seed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the outputs: .npz, or .npy for a single one.")
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

    A bundle is compiled already and runs as it is; it needs no service.
    """
    with reported() as step, ExitStack() as stack:
        values = _symbols(symbols or [])
        step(f"reading {graph}")
        given = read_arrays(inputs or [])
        if is_bundle(graph):
            _require_compiled(
                {
                    "--fast-math": fast_math is not None,
                    "--no-fusion": fusion is not None,
                    "--no-schedule": schedule is not None,
                    "--tuned": tuned is not None,
                    "--dim": bool(dim),
                }
            )
            program, parameters = Program.from_bundle(graph, threads=threads), {}
        else:
            client = stack.enter_context(Client(url, timeout_s=timeout))
            model, settings = read_given(graph, parse_dims(dim or []), lambda: client)
            options = compile_options(fast_math=fast_math, fusion=fusion, schedule=schedule, tuned=tuned)
            settings = settings.with_flags({}, None, options)
            progress = shown(step, f"compiling {graph.name}", [NATIVE])
            program = client.compile(model.graph, NATIVE, settings.options, threads=threads, on_progress=progress)
            parameters = model.parameters
        free = [binding for binding in program.compiled.inputs if binding.var not in parameters]
        if parameters:
            program = program.bind(parameters)
        values = _read_symbols(program, free, given, values)
        arrays = _arguments(program, free, given, values, seed)
        step("running")
        results = [np.asarray(result) for result in program(*arrays, **values)]
        if out is not None:
            write_arrays(out, results)
        profiles = []
        for index in range(repeat):
            step(f"timing {index + 1}/{repeat}")
            profiles.append(program.profile(*arrays, **values))
    console = output()
    console.print(profile_table(profiles))
    console.print(output_table(results))


def _require_compiled(given: Mapping[str, bool]) -> None:
    for option in (name for name, is_given in given.items() if is_given):
        raise RequestError(f"{option} is for compiling, and a bundle is compiled already; compile it again with it.")


def _symbols(written: Sequence[str]) -> dict[str, int]:
    values: dict[str, int] = {}
    for text in written:
        name, _, number = text.partition("=")
        if name in values:
            raise RequestError(f"--symbol {text}: {name} has the value {values[name]} already; give it once.")
        try:
            values[name] = int(number)
        except ValueError:
            raise RequestError(f"--symbol {text}: write it as name=integer.") from None
    return values


def _read_symbols(
    program: Program, free: Sequence[Binding], given: Sequence[np.ndarray], stated: Mapping[str, int]
) -> dict[str, int]:
    """The values of symbols that are stated, and of those that the given arrays say."""
    shapes = {f"input {number}": binding.shape for number, binding in zip(range(len(given)), free, strict=False)}
    symbols = ArgumentSymbols(shapes, program.compiled.symbol_ranges)
    known = {name: value for name, value in stated.items() if name in symbols.unsolved}
    found = symbols.of_arrays(given[: len(shapes)], known)
    for name, value in stated.items():
        if found.setdefault(name, value) != value:
            raise CallInputError(f"--symbol {name}={value}: the inputs make it {found[name]}; leave the option out.")
    return found


def _arguments(
    program: Program,
    free: Sequence[Binding],
    given: Sequence[np.ndarray],
    symbols: Mapping[str, int],
    seed: int | None,
) -> list[np.ndarray]:
    arrays = [as_dtype(array, binding.dtype) for array, binding in zip(given, free, strict=False)]
    if len(given) > len(free) or (len(given) < len(free) and seed is None):
        raise CallInputError(
            f"The graph takes {len(free)} inputs and {len(given)} arrays are given; "
            "--input gives one, --random makes up those that are missing."
        )
    program.planned_peak_bytes(**symbols)
    generator = np.random.default_rng(seed)
    return arrays + [
        random_array(binding.dtype, [evaluate(dim, symbols) for dim in binding.shape], generator)
        for binding in free[len(given) :]
    ]
