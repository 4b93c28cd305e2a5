"""Programs whose buffers share storage compute what the reference does, in every order that their edges allow."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passes.form_kernels import grouping
from passes.schedule import tiling
from tensorkiln.reference import evaluate
from tests.compiled import compiled, program
from tests.numerics.cases import Case, compare
from tests.passes.shuffled import ShuffledCall, random_order, renumbered
from tests.passes.storage_graphs import storage_graphs

EXAMPLES = int(os.environ.get("KILN_EXAMPLES", "2")) * 20
SHAPES = pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])


@pytest.fixture(autouse=True)
def many_work_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs are cut as large ones are: rows shared early, few points to a work-group, long loops in pieces."""
    for name, value in (("GROUP_POINTS", 8), ("MIN_POINTS", 8), ("CHUNK", 8), ("COLUMN_CHUNK", 4)):
        monkeypatch.setattr(tiling, name, value)
    monkeypatch.setattr(grouping, "MIN_ROWS_TO_SHARE", 1)


@SHAPES
def test_any_order_of_items_and_work_groups_computes_the_same(symbolic: bool) -> None:
    @settings(max_examples=EXAMPLES)
    @given(storage_graphs(symbolic=symbolic), st.integers(0, 2**32 - 1))
    def computes(case: Case, seed: int) -> None:
        expected = evaluate(case.graph, *case.arrays, **case.symbols)
        call = ShuffledCall(compiled(case.graph), case.arrays, case.symbols, np.random.default_rng(seed))
        compare(call.run(), expected, case.tolerance)

    computes()


@SHAPES
@pytest.mark.parametrize("threads", [1, 3])
def test_the_runtime_computes_the_same_in_any_order_of_items(symbolic: bool, threads: int) -> None:
    @settings(max_examples=EXAMPLES)
    @given(storage_graphs(symbolic=symbolic), st.integers(0, 2**32 - 1))
    def computes(case: Case, seed: int) -> None:
        expected = evaluate(case.graph, *case.arrays, **case.symbols)
        compilation = compiled(case.graph)
        compare(program(compilation, threads)(*case.arrays, **case.symbols), expected, case.tolerance)
        order = random_order(compilation.program.schedule, np.random.default_rng(seed))
        shuffled = type(compilation)(renumbered(compilation.program, order), compilation.artifacts)
        kept = [array.copy() for array in case.arrays]
        compare(program(shuffled, threads)(*case.arrays, **case.symbols), expected, case.tolerance)
        compare(case.arrays, kept)

    computes()
