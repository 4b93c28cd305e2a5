"""Interleaved measurement of all candidates, so that a slow moment of the machine affects all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.compile import Compilation
from tensorkiln.frontends.onnx import load
from tensorkiln.graph import Graph
from tests.bench.onnx_runtime import onnx_runtime
from tests.bench.workloads import Workload
from tests.compiled import compiled, program
from tests.networks.light import shipped, with_random_weights

Array = np.ndarray[Any, Any]
Call = Callable[[], object]

SAMPLE_S = 0.002
"""The least time of a sample, so that the clock's resolution does not matter."""

COMPILES = 2


@dataclass(frozen=True, slots=True)
class Measurement:
    """Median seconds of a call by candidate, the compiler's estimate for ours, the seconds of the fastest compilation,
    and the number of kernels of the program.
    """

    name: str
    seconds: Mapping[str, float]
    estimate_s: float
    compile_s: float
    kernels: int


def measure(workload: Workload, budget_s: float) -> Measurement:
    """Measure for `budget_s` seconds. AssertionError when the results of candidates differ."""
    arrays = workload.arrays()
    compilation, compile_s = _compile(workload.write().graph())
    ours = program(compilation)
    calls: dict[str, Callable[..., Any]] = {
        "tensorkiln": lambda: ours(*arrays)[0],
        "NumPy": lambda: workload.numpy(*arrays),
    }
    session = onnx_runtime(workload.model())
    if session is not None:
        feeds = dict(zip("abc", arrays, strict=False))
        calls["ONNX Runtime"] = lambda: session(feeds)[0]
    return _measurement(workload.name, by_turns(calls, budget_s), compilation, compile_s)


def measure_network(name: str, budget_s: float) -> Measurement:
    """Measure a light network with random weights; NumPy is not a candidate."""
    proto = with_random_weights(shipped(name))
    model = load(proto)
    compilation, compile_s = _compile(model.graph)
    ours = program(compilation).bind(model.parameters)
    image = np.random.default_rng(1).standard_normal((1, 3, 224, 224), np.float32)
    calls: dict[str, Callable[..., Any]] = {"tensorkiln": lambda: ours(image)[-1]}
    session = onnx_runtime(proto)
    if session is not None:
        (input_name,) = model.inputs
        calls["ONNX Runtime"] = lambda: session({input_name: image})[-1]
    return _measurement(name, by_turns(calls, budget_s), compilation, compile_s)


def _measurement(name: str, seconds: Mapping[str, float], compilation: Compilation, compile_s: float) -> Measurement:
    compiled_program = compilation.program
    called = [entry for entry in compiled_program.schedule.analysis if entry.item_id not in compiled_program.prepare]
    estimate_s = sum(entry.est_ns for entry in called) / 1e9
    return Measurement(name, seconds, estimate_s, compile_s, len(compiled_program.kernels))


def rank_correlation(measurements: Sequence[Measurement]) -> float:
    """Spearman's rank correlation of our times and the compiler's estimates; 1 if both order the workloads alike."""
    times = [(entry.seconds["tensorkiln"], entry.estimate_s) for entry in measurements]
    measured, estimated = (np.argsort(np.argsort(column)) for column in zip(*times, strict=True))
    return float(np.corrcoef(measured, estimated)[0, 1])


def by_turns(calls: Mapping[str, Callable[[], Array]], budget_s: float) -> dict[str, float]:
    """Median seconds of a call of each. The first calls are not timed, and their results must agree."""
    first, *others = [call() for call in calls.values()]
    for other in others:
        np.testing.assert_allclose(first, other, rtol=1e-3, atol=1e-4 * float(np.abs(other).max()))
    for call in calls.values():
        call()  # A program sets up its fast call path at the second call.
    repeats = {name: max(1, round(SAMPLE_S / _sample(call, 1))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + budget_s
    while time.perf_counter() < end or not all(samples.values()):
        for name, call in calls.items():
            samples[name].append(_sample(call, repeats[name]))
    return {name: statistics.median(taken) for name, taken in samples.items()}


def _sample(call: Call, repeats: int) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - began) / repeats


def _compile(graph: Graph) -> tuple[Compilation, float]:
    fastest = float("inf")
    for _ in range(COMPILES - 1):
        fastest = min(fastest, _sample(lambda: compiled(graph), 1))
    began = time.perf_counter()
    compilation = compiled(graph)
    return compilation, min(fastest, time.perf_counter() - began)
