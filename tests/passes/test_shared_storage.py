"""Programs whose buffers share storage compute what the reference does, in every order that their edges allow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passes.compile import Compilation
from passes.fuse import grouping
from passes.schedule import tiling
from tensorkiln.build import Builder, matmul, softmax
from tensorkiln.reference import evaluate
from tensorkiln.runtime import host_launch
from tests.compiled import compiled, program
from tests.numerics.cases import Case, compare
from tests.numerics.cases.turns import EXAMPLES
from tests.passes.modules import output
from tests.passes.shuffled import ShuffledCall, random_order, renumbered
from tests.passes.storage_graphs import storage_graphs

THREADS = 3
SHAPES = pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])


@pytest.fixture(autouse=True)
def many_work_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs are cut as large ones are: rows shared early, few points to a work-group, a thread for each."""
    for name, value in (("GROUP_POINTS", 8), ("MIN_POINTS", 8), ("CHUNK", 8), ("COLUMN_CHUNK", 4)):
        monkeypatch.setattr(tiling, name, value)
    monkeypatch.setattr(grouping, "MIN_ROWS_TO_SHARE", 1)
    monkeypatch.setattr(host_launch, "NS_PER_WORKER", 1)


@SHAPES
def test_any_order_of_items_and_work_groups_computes_the_same(symbolic: bool) -> None:
    @settings(max_examples=15 * EXAMPLES)
    @given(storage_graphs(symbolic=symbolic), st.integers(0, 2**32 - 1))
    def computes(case: Case, seed: int) -> None:
        expected = evaluate(case.graph, *case.arrays, **case.symbols)
        call = ShuffledCall(compiled(case.graph), case.arrays, case.symbols, np.random.default_rng(seed))
        compare(call.run(), expected, case.tolerance)

    computes()


@SHAPES
def test_the_runtime_computes_the_same_in_any_order_of_items(symbolic: bool) -> None:
    @settings(max_examples=15 * EXAMPLES)
    @given(storage_graphs(symbolic=symbolic), st.integers(0, 2**32 - 1))
    def computes(case: Case, seed: int) -> None:
        expected = evaluate(case.graph, *case.arrays, **case.symbols)
        kept = [array.copy() for array in case.arrays]
        compilation = compiled(case.graph)
        compare(program(compilation, THREADS)(*case.arrays, **case.symbols), expected, case.tolerance)
        rng = np.random.default_rng(seed)
        schedule = compilation.program.schedule
        # By number, or, where items do not stand in an order that respects the edges, in one that the runtime finds.
        for order in (random_order(schedule, rng), [int(item) for item in rng.permutation(len(schedule.items))]):
            shuffled = Compilation(renumbered(compilation.program, order), compilation.artifacts)
            compare(program(shuffled, THREADS)(*case.arrays, **case.symbols), expected, case.tolerance)
        compare(case.arrays, kept)

    computes()


def test_threads_that_overwrite_one_operand_do_not_meet() -> None:
    """Scores that a softmax overwrites, some rows on each thread."""
    b = Builder("scores")
    q, k = b.input("float32", (96, 16)), b.input("float32", (96, 16))
    graph = output(b, softmax(matmul(q, k.transpose()), -1))
    made = program(compiled(graph), THREADS)
    _, kernel = made.compiled.kernels
    assert set(kernel.ins) & set(kernel.outs)
    arrays = [np.random.default_rng(n).standard_normal((96, 16)).astype(np.float32) for n in range(2)]
    assert made.profile(*arrays)[1].threads == THREADS
    for _ in range(20):
        np.testing.assert_allclose(made(*arrays)[0], evaluate(graph, *arrays)[0], rtol=1e-4, atol=1e-5)
