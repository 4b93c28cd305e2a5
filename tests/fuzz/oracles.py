"""One case compiled in each of its ways and run, and its results compared with the reference and with one another."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from passes.compile import Compilation, CompileRequest
from tensorkiln.errors import TensorkilnError
from tensorkiln.options import CompileOptions
from tensorkiln.reference.precision import Array
from tests import checked
from tests.compiled import EVERY, target, with_texts
from tests.drawn_times import DrawnTimes
from tests.emulated import Emulation

from .bounds import Bounded, evaluate_bounded
from .composer import Case, Way
from .values import arrays_for
from .verdict import Verdict

Run = Callable[..., Sequence[Array]]
"""`run(compilation, *arrays, seed, **symbols)`: what a compiled program gives."""

_EVERY = 8
"""Of so many cases one is compiled with the texts of all stages, which takes twice as long."""

_STRATEGY = re.compile(r'kiln\.strategy = "(\w+)"')


def run_here(compilation: Compilation, *arrays: Array, seed: int = 0, **symbols: int) -> Sequence[Array]:
    """In guarded memory, work-groups in an order drawn from the seed, in one thread and in two."""
    return checked.run(compilation, *arrays, seed=seed, threads=2, **symbols)


def run_emulated(compilation: Compilation, *arrays: Array, seed: int = 0, **symbols: int) -> Sequence[Array]:
    return Emulation(compilation, arrays, symbols).run(seed=seed)


def judge(case: Case, run: Run = run_here) -> Verdict:
    """What comes of a case; `run` runs what is compiled for a CPU."""
    arrays = arrays_for(case.graph, case.symbols, case.seed)
    expected = evaluate_bounded(case.graph, arrays, case.symbols)
    verdict = Verdict()
    verdict.count_bounds(expected)
    results: list[tuple[Way, Sequence[Array]]] = []
    for way in case.ways:
        started = time.perf_counter()
        try:
            results.append((way, _made(case, way, arrays, run, verdict)))
        except checked.CheckedFault as fault:
            verdict.problem = verdict.problem or f"{way}: {fault}"
        except TensorkilnError as error:
            verdict.refused[f"{error.code}: {_shape_of(str(error))}"] += 1
            if error.code not in _REFUSALS:
                verdict.problem = verdict.problem or f"{way}: {type(error).__name__}: {error}"
        verdict.milliseconds[way.target] += round(1000 * (time.perf_counter() - started))
    for way, found in results:
        verdict.problem = verdict.problem or differing(found, expected, str(way), "the reference")
    if not verdict.problem and len(results) == 2:
        (one, mine), (other, theirs) = results
        beside = [(value, bound) for value, (_, bound) in zip(theirs, expected, strict=True)]
        verdict.problem = differing(mine, beside, str(one), str(other))
    return verdict


_REFUSALS = frozenset({"graph.unsupported", "limit.exceeded"})
"""Codes of what may be refused; any other error of ours says that something is broken."""


def _made(case: Case, way: Way, arrays: Sequence[Array], run: Run, verdict: Verdict) -> Sequence[Array]:
    options = CompileOptions(fusion=way.fusion)
    measured = DrawnTimes(case.seed) if way.any_schedule else {}
    request = CompileRequest(case.graph, target(way.target), options, measured)
    stages = ("schedule", "translate") if case.seed % _EVERY else EVERY
    compilation = with_texts(request, *stages)
    verdict.count_program(way, _STRATEGY.findall(compilation.dumps["schedule"]))
    call = run_emulated if way.target.startswith("cuda") else run
    copies = [array.copy() for array in arrays]
    found = [np.array(result) for result in call(compilation, *copies, seed=case.seed, **case.symbols)]
    for place, (copy, array) in enumerate(zip(copies, arrays, strict=True)):
        if copy.tobytes() != array.tobytes():
            verdict.problem = f"{way}: input {place} has been written to"
    return found


def _shape_of(message: str) -> str:
    """A message without its numbers, so that equal refusals are counted together."""
    return re.sub(r"\d+", "#", message)[:100]


def differing(found: Sequence[Any], expected: Sequence[Bounded], mine: str, theirs: str) -> str:
    """What differs by more than its bound, or nothing."""
    if len(found) != len(expected):
        return f"{mine} gives {len(found)} results, {theirs} {len(expected)}"
    for place, (result, (value, bound)) in enumerate(zip(found, expected, strict=True)):
        if result.dtype != value.dtype or result.shape != value.shape:
            return (
                f"output {place} of {mine} is {result.dtype}{list(result.shape)}, "
                f"of {theirs} {value.dtype}{list(value.shape)}"
            )
        wrong = _apart(result, value) > bound
        if np.any(wrong):
            at = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
            return (
                f"output {place} of {mine} is {np.atleast_1d(result)[at]!r} at {at}, of {theirs} "
                f"{np.atleast_1d(value)[at]!r}, which may differ by {np.atleast_1d(bound)[at]:.3g}; "
                f"{int(np.sum(wrong))} of {wrong.size} differ by more"
            )
    return ""


def _apart(result: Array, value: Array) -> Array:
    """The distance of each pair of elements: 0 of equal ones, NaN and infinities included, infinity beside NaN."""
    same = result == value
    if np.issubdtype(value.dtype, np.integer) or value.dtype == np.bool_:
        return np.where(same, 0.0, np.maximum(np.abs(result.astype(np.float64) - value.astype(np.float64)), 1.0))
    one, other = result.astype(np.longdouble), value.astype(np.longdouble)
    with np.errstate(all="ignore"):
        distance = np.where(same | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one - other))
    return np.where(np.isnan(distance), np.inf, distance).astype(np.float64)
