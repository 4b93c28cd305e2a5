"""Every node kind, dtype and variant, static and symbolic: the code of a GPU, emulated, against the reference."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings

from tensorkiln.dtypes import DType
from tensorkiln.reference import evaluate
from tests.emulated import run
from tests.numerics.cases import CHAINS, Case, chain_for, compare, graph_for
from tests.numerics.cases.kinds import variants

EXAMPLES = int(os.environ.get("KILN_EXAMPLES", "1"))
SHAPES = pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])


def check(case: Case) -> None:
    expected = evaluate(case.graph, *case.arrays, **case.symbols)
    compare(run(case.graph, *case.arrays, **case.symbols), expected, case.tolerance)


def name_of(value: object) -> str:
    return str(value) or "-"


@SHAPES
@pytest.mark.parametrize(("kind", "dtype", "op"), variants(), ids=name_of)
def test_a_node_computes_what_the_reference_does(kind: str, dtype: DType, op: str, symbolic: bool) -> None:
    @settings(max_examples=EXAMPLES)
    @given(graph_for(kind, dtype, symbolic, op))
    def computes(case: Case) -> None:
        check(case)

    computes()


@SHAPES
@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, chain in CHAINS.items() for dtype in chain.dtypes], ids=name_of
)
def test_a_network_computes_what_the_reference_does(name: str, dtype: DType, symbolic: bool) -> None:
    @settings(max_examples=EXAMPLES)
    @given(chain_for(name, dtype, symbolic))
    def computes(case: Case) -> None:
        check(case)

    computes()
