"""Every node kind, on every dtype and variant, static and symbolic: compiled code against the reference.

For this machine, in guarded memory and then by the runtime, and for a GPU, whose code is emulated.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis.strategies import SearchStrategy

from tensorkiln.dtypes import DType
from tensorkiln.reference import evaluate
from tests import checked, emulated

from .cases import CHAINS, Case, chain_for, compare, graph_for
from .cases.drawn import for_each_of, parametrize
from .cases.kinds import KINDS, variants

Run = Callable[..., tuple[Any, ...]]

EXAMPLES = int(os.environ.get("KILN_EXAMPLES", "1"))
"""How many graphs are drawn for a variant."""
SHAPES = pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
MACHINES = pytest.mark.parametrize("run", [checked.run_graph, emulated.run], ids=["cpu", "gpu"])


def agree(run: Run, cases: SearchStrategy[Case]) -> None:
    """What is run of every case is what the reference evaluates."""

    def agrees(case: Case) -> None:
        expected = evaluate(case.graph, *case.arrays, **case.symbols)
        compare(run(case.graph, *case.arrays, **case.symbols), expected, case.tolerance)

    for_each_of(EXAMPLES, cases, agrees)


def test_the_suite_covers_every_kind_and_dtype() -> None:
    assert len(KINDS) == 45
    assert {dtype for _, dtype, _ in variants()} == set(DType)


@MACHINES
@SHAPES
@parametrize(("kind", "dtype", "op"), variants())
def test_a_node_computes_what_the_reference_does(kind: str, dtype: DType, op: str, symbolic: bool, run: Run) -> None:
    agree(run, graph_for(kind, dtype, symbolic, op))


@MACHINES
@SHAPES
@parametrize(("name", "dtype"), ((name, dtype) for name, chain in CHAINS.items() for dtype in chain.dtypes))
def test_a_network_computes_what_the_reference_does(name: str, dtype: DType, symbolic: bool, run: Run) -> None:
    agree(run, chain_for(name, dtype, symbolic))
