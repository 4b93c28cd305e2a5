"""The tools that run programs on this machine: run and profile. A service only compiles."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

import numpy as np

from ..buffers import Binding
from ..errors import CallInputError
from ..expr import evaluate
from ..frontends.solve_symbols import ArgumentSymbols
from ..program import Program
from ..runtime.random_arrays import random_array
from ..sdk import NATIVE, Client
from ..stablehlo import StableHlo
from .tool import Arguments, Requests, Result, Tool
from .tools import source

MAX_SHOWN: Final = 1000
"""The most elements returned of an output."""
_REPEAT: Final = 10
_TAKES: Final = ("graph", "stablehlo", "dims", "options", "inputs", "symbols", "seed")


def local_tools(client: Client) -> tuple[Tool, ...]:
    """The tools that compile with `client` for the CPU of this machine, and run the program in this process."""

    async def run(requests: Requests, arguments: Arguments) -> Result:
        return await asyncio.to_thread(_run, client, arguments)

    async def profile(requests: Requests, arguments: Arguments) -> Result:
        return await asyncio.to_thread(_profile, client, arguments)

    return (
        Tool("run", "Compile a graph for this machine, run it, and return its outputs.", _TAKES, (), run),
        Tool(
            "profile",
            "Compile a graph for this machine, run it several times, and return the median time of each kernel.",
            (*_TAKES, "repeat"),
            (),
            profile,
        ),
    )


def _run(client: Client, arguments: Arguments) -> Result:
    program, arrays, symbols = _prepared(client, arguments)
    outputs = [np.asarray(each) for each in program(*arrays, **symbols)]
    return {"digest": program.compiled.digest, "symbols": symbols, "outputs": [_shown(each) for each in outputs]}


def _profile(client: Client, arguments: Arguments) -> Result:
    program, arrays, symbols = _prepared(client, arguments)
    program(*arrays, **symbols)
    runs = [program.profile(*arrays, **symbols) for _ in range(arguments.get("repeat", _REPEAT))]
    items = [
        {
            "name": first.name,
            "kind": first.op,
            "ns": median(run[place].ns for run in runs),
            "estimate_ns": first.estimate_ns,
        }
        for place, first in enumerate(runs[0])
    ]
    total = median(sum(item.ns for item in run) for run in runs)
    return {"digest": program.compiled.digest, "symbols": symbols, "runs": len(runs), "total_ns": total, "items": items}


def _prepared(client: Client, arguments: Arguments) -> tuple[Program, list[np.ndarray], dict[str, int]]:
    given = source(arguments)
    graph: Any = given.get("graph")
    if graph is None:
        dims = {name: (bounds["min"], bounds["max"]) for name, bounds in given.get("dims", {}).items()}
        graph = StableHlo(arguments["stablehlo"], dims)
    program = client.compile(graph, NATIVE, arguments.get("options"))
    bindings = program.compiled.inputs
    values = arguments.get("inputs") or [None] * len(bindings)
    if len(values) != len(bindings):
        raise CallInputError(f"The graph takes {len(bindings)} inputs and {len(values)} are given.")
    arrays = [None if value is None else _array(value, place, bindings[place]) for place, value in enumerate(values)]
    symbols = _symbols(program, arrays, arguments.get("symbols", {}))
    program.planned_peak_bytes(**symbols)
    generator = np.random.default_rng(arguments.get("seed", 0))
    drawn = [
        random_array(binding.dtype, [evaluate(dim, symbols) for dim in binding.shape], generator)
        if array is None
        else array
        for binding, array in zip(bindings, arrays, strict=True)
    ]
    return program, drawn, symbols


def _array(value: Any, place: int, binding: Binding) -> np.ndarray:
    try:
        return np.asarray(value, dtype=binding.dtype.numpy)
    except (TypeError, ValueError, OverflowError):
        raise CallInputError(
            f"Input {place} is not an array of {binding.dtype}.", pointers=[f"/inputs/{place}"]
        ) from None


def _symbols(program: Program, arrays: Sequence[np.ndarray | None], stated: dict[str, int]) -> dict[str, int]:
    shapes = {
        f"input {place}": binding.shape
        for place, (binding, array) in enumerate(zip(program.compiled.inputs, arrays, strict=True))
        if array is not None
    }
    known = ArgumentSymbols(shapes, program.compiled.symbol_ranges)
    found = known.of_arrays(
        [each for each in arrays if each is not None], {k: v for k, v in stated.items() if k in known.unsolved}
    )
    for name, value in stated.items():
        if found.setdefault(name, value) != value:
            raise CallInputError(f"The symbol {name} is {value}, and the inputs make it {found[name]}.")
    return found


def _shown(array: np.ndarray) -> Result:
    flat = array.reshape(-1)[:MAX_SHOWN]
    values = [repr(each) if isinstance(each, complex) else each for each in flat.astype(_plain(array)).tolist()]
    # JSON has no infinities and NaN.
    shown = [each if not isinstance(each, float) or np.isfinite(each) else str(each) for each in values]
    return {"shape": list(array.shape), "dtype": str(array.dtype), "values": shown, "cut": array.size > MAX_SHOWN}


def _plain(array: np.ndarray) -> Any:
    return array.dtype if array.dtype.kind in "biufc" else np.float64
