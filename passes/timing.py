"""Time the candidate schedules of a graph's kernels, round-robin; program n has each kernel's n-th candidate."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Final, TypeAlias

import numpy as np

from passes.compile import Compilation, CompileRequest, compile_request
from passes.schedule.choice import Candidate
from passes.schedule.cost import TYPICAL_EXTENT, at_typical
from passes.strategy import MARGIN
from tensorkiln import expr
from tensorkiln.errors import CallError, DeviceError, UnsupportedGraphError
from tensorkiln.program import Program
from tensorkiln.runtime.random_arrays import random_array
from tensorkiln.schedule import KernelItem
from tensorkiln.spec import CompiledProgram
from tensorkiln.spec.tuning import MOST_CANDIDATES, Timing, TunedKernel, Tuning
from tensorkiln.target import Target

HOPELESS: Final = 4.0
"""Candidates whose estimate is more than this many times the smallest one are not timed."""
LEAST_ROUNDS: Final = 5
MOST_ROUNDS: Final = 200
BUDGET_S: Final = 3.0
"""Seconds for the rounds, unless LEAST_ROUNDS take longer."""
MOST_INPUT_BYTES: Final = 256 << 20
GAIN: Final = 0.99
"""A tuned program counts as faster when its best call takes less than this share of the untuned one's."""

Slate: TypeAlias = Sequence[Candidate]
"""The candidates of a kernel to time; the first is the one picked without measurements."""


def tune(request: CompileRequest, on_stage: Callable[[str], None]) -> Tuning:
    """Time the candidates of a graph's kernels here, on one thread, at typical symbol sizes with random inputs.

    UnsupportedGraphError when the target is not this machine, or the program does not run here or at such sizes;
    otherwise errors as for `compile_request`.
    """
    require_native(request.target)
    base = compile_request(request, on_stage)
    slates = [_slate(*offered) for offered in base.offered]
    forced = [
        {slate[n].key: 0.0 for slate in slates if n < len(slate)} for n in range(1, max(map(len, slates), default=1))
    ]
    sizes = _typical(base.program)
    tuning = Tuning(machine=request.target.cpu or "", sizes=tuple(sizes.values()), rounds=0)
    if not forced:
        return tuning
    variants = [base, *(compile_request(replace(request, measured=picks), on_stage) for picks in forced)]
    with _runs_here():
        on_stage("measure")
        given = _Given(base.program, sizes)
        spent = _rounds([given.profile(variant) for variant in variants])
    tuning = tuning.model_copy(update={"rounds": len(spent[0]), "kernels": _kernels(slates, spent)})
    if not tuning.faster:
        return tuning
    tuned = compile_request(replace(request, measured=tuning.faster), on_stage)
    with _runs_here():
        on_stage("measure")
        calls = _rounds([given.call(base), given.call(tuned)])
    before_ns, after_ns = (min(spent for (spent,) in each) for each in calls)
    gain = after_ns < GAIN * before_ns
    return tuning.model_copy(update={"before_ns": before_ns, "after_ns": after_ns, "gain": gain})


@contextmanager
def _runs_here() -> Generator[None]:
    """Turn CallError and DeviceError into UnsupportedGraphError: the compiler is not at fault."""
    try:
        yield
    except (CallError, DeviceError) as error:
        raise UnsupportedGraphError(f"the graph cannot be timed: {error.message}") from error


def _typical(program: CompiledProgram) -> dict[str, int]:
    """Sizes of the symbols: the typical extent of the cost model, halved until inputs fit MOST_INPUT_BYTES."""
    ranges = program.symbol_ranges
    extent = TYPICAL_EXTENT
    while True:
        at = at_typical(ranges, extent)
        taken = sum(at(expr.product((*each.shape, each.dtype.itemsize))) for each in program.inputs)
        if taken <= MOST_INPUT_BYTES or extent == 1:
            return {name: at(expr.symbol(name)) for name in ranges}
        extent //= 2


def require_native(target: Target) -> None:
    """Raise UnsupportedGraphError when timings on this machine do not apply to `target`."""
    here = Target.parse("cpu:native")
    if target.kind != "cpu" or target.cpu != here.cpu or not set(target.features) <= set(here.features):
        wanted = target.cpu or target.arch
        raise UnsupportedGraphError(
            f"schedules for {target.kind} {wanted} cannot be timed here, on {here.cpu}; "
            f'ask a service that runs on {wanted}, or compile with tuned="prefer"',
            details={"target": wanted, "machine": here.cpu},
        )


class _Given:
    """The inputs that every program of a graph is called with."""

    def __init__(self, program: CompiledProgram, symbols: Mapping[str, int]) -> None:
        rng = np.random.default_rng(0)
        self._symbols = symbols
        drawn = [
            random_array(each.dtype, [expr.evaluate(dim, symbols) for dim in each.shape], rng)
            for each in program.inputs
        ]
        inputs = list(zip(program.inputs, drawn, strict=True))
        self._bound = {binding.var: array for binding, array in inputs if binding.is_parameter}
        self._arrays = [array for binding, array in inputs if not binding.is_parameter]

    def profile(self, compilation: Compilation) -> Callable[[], Sequence[int]]:
        """A function that runs the program and returns the nanoseconds of each kernel, by `kernel_id`."""
        program = self._program(compilation)
        operations = [item.operation for item in compilation.program.schedule.items]
        kernel_of = {at: each.kernel_id for at, each in enumerate(operations) if isinstance(each, KernelItem)}

        def profiled() -> Sequence[int]:
            spent = [0] * len(compilation.program.kernels)
            for step in program.profile(*self._arrays, **self._symbols):
                if step.item_id in kernel_of:
                    spent[kernel_of[step.item_id]] += step.ns
            return spent

        return profiled

    def call(self, compilation: Compilation) -> Callable[[], Sequence[int]]:
        """A function that runs the program and returns the nanoseconds it took."""
        program = self._program(compilation)

        def called() -> Sequence[int]:
            began = time.perf_counter_ns()
            program(*self._arrays, **self._symbols)
            return [time.perf_counter_ns() - began]

        return called

    def _program(self, compilation: Compilation) -> Program:
        program = Program(compilation.program, compilation.artifacts.__getitem__, threads=1)
        return program.bind(self._bound) if self._bound else program


def _slate(candidates: Slate, picked: int) -> Slate:
    most = HOPELESS * min(candidate.estimate_ns for candidate in candidates)
    others = (candidate for position, candidate in enumerate(candidates) if position != picked)
    hopeful = (candidate for candidate in others if candidate.estimate_ns <= most)
    return [candidates[picked], *islice(hopeful, MOST_CANDIDATES - 1)]


def _rounds(calls: Sequence[Callable[[], Sequence[int]]]) -> list[list[Sequence[int]]]:
    """The results of each call per round, after an uncounted warm-up round."""
    for call in calls:
        call()
    results: list[list[Sequence[int]]] = [[] for _ in calls]
    end = time.perf_counter() + BUDGET_S
    while len(results[0]) < LEAST_ROUNDS or (len(results[0]) < MOST_ROUNDS and time.perf_counter() < end):
        for call, result in zip(calls, results, strict=True):
            result.append(call())
    return results


def _kernels(slates: Sequence[Slate], spent: Sequence[Sequence[Sequence[int]]]) -> tuple[TunedKernel, ...]:
    """Kernels with several candidates that run during a call; equal kernels are merged and their times summed."""
    equal: dict[str, list[int]] = {}
    for kernel, slate in enumerate(slates):
        if len(slate) > 1 and any(sum(round_[kernel] for round_ in rounds) for rounds in spent):
            equal.setdefault(slate[0].key, []).append(kernel)
    return tuple(_kernel(kernels, slates[kernels[0]], spent) for kernels in equal.values())


def _kernel(kernels: Sequence[int], slate: Slate, spent: Sequence[Sequence[Sequence[int]]]) -> TunedKernel:
    timings: list[Timing] = []
    for candidate, rounds in zip(slate, spent, strict=False):
        samples = [sum(round_[kernel] for kernel in kernels) for round_ in rounds]
        low, median, high = statistics.quantiles(samples, n=4)
        timings.append(
            Timing(
                key=candidate.key,
                strategy=candidate.strategy,
                estimate_ns=int(candidate.estimate_ns) * len(kernels),
                least_ns=min(samples),
                median_ns=int(median),
                spread_ns=int(high - low),
            )
        )
    times = [timing.least_ns * (MARGIN if position == 0 else 1.0) for position, timing in enumerate(timings)]
    return TunedKernel(kernel=kernels[0], picked=times.index(min(times)), candidates=tuple(timings))
