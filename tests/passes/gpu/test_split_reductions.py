"""Long reductions to few results: many work-groups, the same result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passes.schedule.sum_blocks import ACCUMULATOR_TERMS
from tensorkiln.build import Builder
from tensorkiln.expr import evaluate as evaluate_dim
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests.compiled import compiled
from tests.emulated import Emulation
from tests.passes.modules import output

from .graphs import TARGET

SHAPES = [(1 << 17,), (100_003,), (3, 70_001), (40_000, 2), (200, 3, 200)]


def reduced(kind: str, dtype: str, shape: Any, axes: Any) -> Graph:
    b = Builder("reduced")
    x = b.input(dtype, shape)
    return output(b, {"sum": x.sum, "max": x.max, "prod": x.prod}[kind](axis=axes))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("kind", "dtype"), [("sum", "int32"), ("max", "float32"), ("prod", "uint8"), ("sum", "float32")]
)
def test_both_steps_give_what_one_would(kind: str, dtype: str, shape: tuple[int, ...]) -> None:
    axes = {1: (0,), 2: (0,) if shape[-1] == 2 else (1,), 3: (0, 2)}[len(shape)]
    graph = reduced(kind, dtype, shape, axes)
    compilation = compiled(graph, TARGET, texts=["translate"])
    assert len(compilation.program.kernels) == 2
    assert all(kernel.global_size[0] != 1 for kernel in compilation.program.kernels[:1])
    numbers = np.random.default_rng(3)
    draw: Any = numbers.standard_normal(shape) if dtype == "float32" else numbers.integers(-9, 9, shape)
    array = draw.astype(dtype)
    (actual,) = Emulation(compilation, [array], {}).run(watched=True)
    (expected,) = evaluate(graph, array)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-3 if dtype == "float32" else 0)


def test_a_symbolic_length_may_be_shorter_than_the_parts() -> None:
    b = Builder("symbolic")
    n = b.symbol("n", 1, 1 << 20)
    x = b.input("float32", (n,))
    graph = output(b, x.max(), x.sum())
    compilation = compiled(graph, TARGET, texts=["translate"])
    for length in (1, 100, 255, 256, 8192, 100_001):
        array = -np.random.default_rng(5).random(length, np.float32) - 1
        largest, total = Emulation(compilation, [array], {"n": length}).run()
        assert largest == array.max(), length
        np.testing.assert_allclose(total, array.sum(dtype=np.float64), rtol=1e-5)


def test_enough_results_are_reduced_in_one_step() -> None:
    assert len(compiled(reduced("sum", "float32", (600, 100_000), (1,)), TARGET).program.kernels) == 1


def test_a_thread_adds_up_many_terms_in_blocks() -> None:
    b = Builder("long")
    m, n = b.symbol("m", 1, 1000), b.symbol("n", 1, 1 << 24)
    graph = output(b, b.input("float32", (m, n)).sum(1))
    compilation = compiled(graph, TARGET, texts=["translate"])
    (kernel,) = compilation.program.kernels
    assert kernel.local_size is not None
    lanes = evaluate_dim(kernel.local_size[0], {})
    array = np.full((1, 2 * ACCUMULATOR_TERMS * lanes + 1001), 0.1, np.float32)
    (total,) = Emulation(compilation, [array], {"m": 1, "n": array.size}).run()
    np.testing.assert_allclose(total, array.sum(1, dtype=np.float64), rtol=1e-5)
    assert "fpext float" in compilation.dumps["translate"]
