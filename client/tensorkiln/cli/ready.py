"""A program with its inputs, for `kiln run` and `kiln bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..buffers import Binding
from ..bundle import is_bundle
from ..errors import CallInputError, RequestError
from ..expr import evaluate
from ..frontends.solve_symbols import ArgumentSymbols
from ..program import Program
from ..runtime.random_arrays import random_array
from ..sdk import NATIVE, Client
from .arrays import as_dtype, read_arrays
from .dims import parse_dims
from .model import read_given
from .report import Step, shown


@dataclass(frozen=True, slots=True)
class Ready:
    """`program(*arrays, **symbols)` runs."""

    program: Program
    arrays: list[np.ndarray]
    symbols: dict[str, int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The program and inputs given on the command line; `options` are the compile options."""

    graph: Path
    inputs: Sequence[Path]
    symbols: Sequence[str]
    dim: Sequence[str]
    seed: int | None
    threads: int | None
    options: Mapping[str, Any]
    url: str | None
    timeout_s: float | None


def ready(wanted: Wanted, step: Step, stack: ExitStack) -> Ready:
    """Compile a graph for this machine, or load a bundle, and read its inputs or draw them at random.

    RequestError and CallInputError for arguments that do not fit the program, and the errors of a compile.
    """
    graph, symbols = wanted.graph, _symbols(wanted.symbols)
    step(f"reading {graph}")
    given = read_arrays(wanted.inputs)
    if is_bundle(graph):
        _require_compiled({**wanted.options, **({"dim": True} if wanted.dim else {})})
        program, parameters = Program.from_bundle(graph, threads=wanted.threads), {}
    else:
        client = stack.enter_context(Client(wanted.url, timeout_s=wanted.timeout_s))
        model, settings = read_given(graph, parse_dims(wanted.dim), lambda: client)
        settings = settings.with_flags({}, None, wanted.options)
        progress = shown(step, f"compiling {graph.name}", [NATIVE])
        program = client.compile(model.graph, NATIVE, settings.options, threads=wanted.threads, on_progress=progress)
        parameters = model.parameters
    free = [binding for binding in program.compiled.inputs if binding.var not in parameters]
    if parameters:
        program = program.bind(parameters)
    values = _read_symbols(program, free, given, symbols)
    return Ready(program, _arguments(program, free, given, values, wanted.seed), values)


_FLAGS = {"fast_math": "--fast-math", "fusion": "--no-fusion", "schedule": "--no-schedule", "tuned": "--tuned"}


def _require_compiled(given: Mapping[str, Any]) -> None:
    for name in given:
        option = _FLAGS.get(name, f"--{name}")
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
    """The values of symbols, as stated or solved from the given arrays."""
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
            "--input gives one, --random fills in the missing ones."
        )
    program.planned_peak_bytes(**symbols)
    generator = np.random.default_rng(seed)
    return arrays + [
        random_array(binding.dtype, [evaluate(dim, symbols) for dim in binding.shape], generator)
        for binding in free[len(given) :]
    ]
