"""Whole graphs, compiled for a GPU and called through the runtime on the emulated one."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln import reference
from tensorkiln.program import Program
from tests.compiled import compiled
from tests.gpu.bench import copy_bandwidth, line, measure
from tests.gpu.benches import BENCHES
from tests.gpu.cases import CASES, Case
from tests.gpu.check import calls, check, difference, names
from tests.gpu.drawn import drawn
from tests.gpu.make_bundles import make_bundles
from tests.simt.driver import EmulatedDriver

ARCH = "sm_80"


def device(case: Case) -> EmulatedDriver:
    """A device that knows the code of a case."""
    return EmulatedDriver(codes(compiled(case.graph(), f"cuda:{ARCH}", texts=["translate"])))


def codes(compilation: Compilation) -> dict[bytes, str]:
    """The LLVM IR behind the code of a program, and of those inside of it."""
    own = {compilation.artifacts[kernel.artifact or ""] for kernel in compilation.program.kernels}
    found = dict.fromkeys(own, compilation.dumps["translate"])
    for inner in compilation.inner:
        found |= codes(inner)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_graph_gives_what_the_reference_gives(case: Case) -> None:
    graph = case.graph()
    compilation = compiled(graph, f"cuda:{ARCH}")
    program = Program(compilation.program, compilation.artifacts.__getitem__, device=device(case))
    results = []
    for seed, symbols in enumerate(case.calls):
        arrays = case.inputs(graph, symbols, seed)
        results.append((program(*arrays, **symbols), reference.evaluate(graph, *arrays, **symbols)))
    for actual, expected in results:
        for one, other in zip(actual, expected, strict=True):
            assert difference(one.numpy(), other, case.bound(other)) is None


def test_bundles_for_a_gpu_are_complete(tmp_path: Path) -> None:
    chosen = [case for case in CASES if case.name in ("softmax", "bfloat", "sorted", "gather")]
    make_bundles(tmp_path, ARCH, cases=chosen)
    assert names(tmp_path) == [case.name for case in chosen]
    for case in chosen:
        program = Program.from_bundle(tmp_path / f"{case.name}.kiln", device=device(case))
        assert check(tmp_path, case.name, program) == []
    softmax = chosen[0]
    with np.load(tmp_path / "softmax.npz") as arrays:
        contents: dict[str, Any] = dict(arrays)
    contents["outputs_1_0"] = contents["outputs_1_0"][::-1]
    np.savez(tmp_path / "softmax.npz", **contents)
    wrong = check(tmp_path, "softmax", Program.from_bundle(tmp_path / "softmax.kiln", device=device(softmax)))
    assert len(wrong) == 2, "both calls"
    assert wrong[0].startswith("softmax at {'n': 13, 'm': 1000}: output 0 differs: ")


@pytest.mark.parametrize("name", ["small", "triad", "row_sums", "softmax"])
def test_the_bench_measures_a_program(name: str) -> None:
    (bench,) = (bench for bench in BENCHES if bench.case.name == f"bench_{name}")
    graph, symbols = bench.case.graph(), dict.fromkeys(bench.case.calls[0], 3)
    compilation = compiled(graph, f"cuda:{ARCH}")
    program = Program(compilation.program, compilation.artifacts.__getitem__, device=device(bench.case))
    arrays = bench.case.inputs(graph, symbols, 0)
    (expected,) = reference.evaluate(graph, *arrays, **symbols)
    figures = measure(name, program, arrays, symbols, 3)
    assert figures.moved == sum(array.nbytes for array in (*arrays, expected))
    assert figures.ns > 0 <= figures.estimate_ns
    assert line(figures, 1.0).startswith(name)
    assert difference(program(*arrays, **symbols)[0].numpy(), expected, 1e-4 * (1 + np.abs(expected))) is None


def test_a_copy_counts_bytes_read_and_written() -> None:
    assert copy_bandwidth(device(CASES[0]), 2, 1000) == 2.0, "an emulated event happens every microsecond"


def test_drawn_graphs_are_carried_with_their_bounds(tmp_path: Path) -> None:
    cases = list(islice(drawn(1, 1), 3))
    make_bundles(tmp_path, ARCH, cases=[], more=cases)
    assert set(names(tmp_path)) == {case.name for case in cases}
    for case in cases:
        (call,) = calls(tmp_path, case.name)
        for one, other, bound in zip(call.outputs, case.outputs, call.bounds, strict=True):
            assert difference(one, other, 0) is None
            assert bound.shape == other.shape


def test_a_difference_is_told() -> None:
    one = np.array([1, 2, np.nan], np.float32)
    assert difference(one, one.copy(), 0) is None
    assert difference(one, one[:2], 0) == "shape (3,) and not (2,)"
    assert difference(one, one.astype(np.float64), 0) == "dtype float32 and not float64"
    assert difference(one, np.array([1, 2.5, np.nan], np.float32), 0.3) == "1 of 3 elements, by up to 0.5"
    assert difference(one, np.array([1, 2, 3], np.float32), 1) == "1 of 3 elements, by up to nan"
