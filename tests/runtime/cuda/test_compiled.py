"""Whole graphs, compiled for a GPU and called through the runtime on the emulated one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln import reference
from tensorkiln.program import Program
from tests.compiled import compiled
from tests.gpu.bench import copy_bandwidth, program_bandwidth
from tests.gpu.cases import BENCHES, CASES, Case
from tests.gpu.check import check, difference, names
from tests.gpu.make_bundles import make_bundles
from tests.simt.driver import EmulatedDriver

ARCH = "sm_80"


def device(case: Case) -> EmulatedDriver:
    """A device that knows the code of a case."""
    compilation = compiled(case.graph(), f"cuda:{ARCH}", dump_stages=True)
    code = {compilation.artifacts[kernel.artifact or ""] for kernel in compilation.program.kernels}
    return EmulatedDriver(dict.fromkeys(code, compilation.dumps["translate"]))


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
            assert difference(one.numpy(), other, case.rtol, case.atol) is None


def test_what_is_carried_to_a_gpu_is_complete(tmp_path: Path) -> None:
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


def test_the_bench_measures_every_program_that_it_names(tmp_path: Path) -> None:
    make_bundles(tmp_path, ARCH, cases=[])
    for case in BENCHES:
        small = replace(case, calls=({"n": 3},))
        driver = device(case)
        program = Program.from_bundle(tmp_path / f"{case.name}.kiln", device=driver)
        assert program_bandwidth(small, program, 2) > 0
        assert copy_bandwidth(driver, 2, 1000) == 2.0, "an emulated event happens every microsecond"
        arrays = case.inputs(case.graph(), {"n": 3}, 0)
        (expected,) = reference.evaluate(case.graph(), *arrays, n=3)
        assert difference(program(*arrays, n=3)[0].numpy(), expected, 1e-4, 1e-4) is None


def test_a_difference_is_told() -> None:
    one = np.array([1, 2, np.nan], np.float32)
    assert difference(one, one.copy(), 0, 0) is None
    assert difference(one, one[:2], 0, 0) == "shape (3,) and not (2,)"
    assert difference(one, one.astype(np.float64), 0, 0) == "dtype float32 and not float64"
    assert difference(one, np.array([1, 2.5, np.nan], np.float32), 0.1, 0.1) == "1 of 3 elements, by up to 0.5"
    assert difference(one, np.array([1, 2, 3], np.float32), 1, 1) == "1 of 3 elements, by up to nan"
