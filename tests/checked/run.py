"""Checked calls of compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from passes.compile import Compilation
from tensorkiln.errors import CallBoundsError
from tensorkiln.expr import ExprError
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tensorkiln.runtime.arguments import bind_symbols, check_constraints, input_specs
from tensorkiln.runtime.host_arrays import accept
from tensorkiln.runtime.loaded import load_program
from tests import compiled

from .fault import CheckedFault
from .memory import WAYS
from .program import CheckedCall

Array = np.ndarray[Any, Any]


def run(
    compilation: Compilation, /, *arrays: Any, seed: int = 0, threads: int = 1, **symbols: int
) -> tuple[Array, ...]:
    """Call a CPU program twice in guarded memory, and return its outputs.

    Arrays end at a guard in the first call and begin at one in the second, which runs kernels on up to `threads`
    threads. Work-groups run in an order drawn from `seed`. A program with prepared values is also called by the
    runtime, with its parameters bound. CheckedFault when a kernel accesses memory outside its arguments, changes a byte
    beside its buffers, or when the calls give different bits. Invalid arguments raise the errors of
    `tensorkiln.program.Program`.
    """
    loaded = load_program(compilation.program, compilation.artifacts.__getitem__)
    program = loaded.program
    values = bind_symbols(program.symbols, symbols)
    try:
        specs = input_specs(program.inputs, values)
        held, _ = accept(specs, arrays)
        check_constraints(program.constraints, values)
        inputs = {binding.buffer: array for binding, array in zip(program.inputs, held, strict=True)}
        at_end, at_start = (
            CheckedCall(loaded, values, inputs, way, Random(seed + number), workers).run()
            for number, (way, workers) in enumerate(zip(WAYS, (1, threads), strict=True))
        )
    except ExprError as error:
        raise CallBoundsError(f"a size of the program has no value at {values}: {error}") from error
    _require_same(at_end, at_start)
    if program.prepare:
        _require_same(_bound(compilation, arrays, threads, symbols), at_end)
    return at_end


def _bound(compilation: Compilation, arrays: Sequence[Any], threads: int, symbols: dict[str, int]) -> tuple[Array, ...]:
    given = list(zip(compilation.program.inputs, arrays, strict=True))
    program = Program(compilation.program, compilation.artifacts.__getitem__, threads=threads)
    bound = program.bind({binding.var: array for binding, array in given if binding.is_parameter})
    return bound(*(array for binding, array in given if not binding.is_parameter), **symbols)


def _require_same(first: Sequence[Array], second: Sequence[Array]) -> None:
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if one.tobytes() == other.tobytes():
            continue
        wrong = (_elements(one) != _elements(other)).any(axis=1)
        place = int(np.flatnonzero(wrong)[0])
        index = tuple(map(int, np.unravel_index(place, one.shape)))
        raise CheckedFault(
            f"output {number}: {int(wrong.sum())} of {one.size} elements depend on where buffers lie, on the order of "
            f"work-groups or on memory that nobody has written; the first at {index} is {one.flat[place]!r} "
            f"and {other.flat[place]!r}"
        )


def _elements(array: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, array.itemsize)


def ready(graph: Graph, target: str = "cpu:native") -> Callable[..., tuple[Array, ...]]:
    """Compile the graph; the returned function makes checked calls, then calls the runtime, and returns the outputs.

    CheckedFault also when the runtime gives other bits than the checked calls.
    """
    compilation = compiled.proven(graph, target)
    program = compiled.program(compilation)

    def call(*arrays: Any, **symbols: int) -> tuple[Array, ...]:
        checked = run(compilation, *arrays, threads=2, **symbols)
        results = program(*arrays, **symbols)
        _require_same(results, checked)
        return results

    return call


def run_graph(graph: Graph, /, *arrays: Any, **symbols: int) -> tuple[Array, ...]:
    """Compile the graph for this machine and call it, by `ready`."""
    return ready(graph)(*arrays, **symbols)
