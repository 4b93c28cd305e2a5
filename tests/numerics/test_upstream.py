"""The linalg of every kernel, lowered by the passes of MLIR alone, against the reference: a second implementation.

What differs from it in the strategies' code is the strategies' fault; what both get wrong was traced wrongly.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tensorkiln.build import Builder, scatter
from tensorkiln.dtypes import DType
from tensorkiln.reference import evaluate
from tests.compiled import program, unscheduled
from tests.emulated import TARGET, Emulation

from .cases import CHAINS, Case, chain_for, compare, graph_for
from .cases.drawn import for_each_of, parametrize
from .cases.kinds import variants
from .cases.turns import EXAMPLES, of_kind, of_network

ON_A_GPU = ("softmax", "convolution_by_movement", "scatter_of_computed", "attention", "gather_of_computed")
FORMS = ("static", "", "", "symbolic", "", "")
FORMS_OF_NETWORKS = ("static", "", "symbolic", "")
"""By turns; two variants of three, and every second network, are left to the tests of kinds."""
NODES = [(*each, form) for each in variants() for form in of_kind(FORMS, len(FORMS), *each) if form]
NETWORKS = [
    (name, dtype, form)
    for name, chain in CHAINS.items()
    for dtype in chain.dtypes
    for form in of_network(FORMS_OF_NETWORKS, len(FORMS_OF_NETWORKS), name, dtype)
    if form
]


def on_this_machine(case: Case) -> None:
    found = program(unscheduled(case.graph))(*case.arrays, **case.symbols)
    compare(found, evaluate(case.graph, *case.arrays, **case.symbols), case.tolerance)


def in_the_emulator(case: Case) -> None:
    made = unscheduled(case.graph, TARGET, texts=["translate"])
    found = Emulation(made, case.arrays, case.symbols).run()
    compare(found, evaluate(case.graph, *case.arrays, **case.symbols), case.tolerance)


def test_every_kind_dtype_and_network_is_static_and_symbolic_and_every_op_is_here() -> None:
    for place in (0, 1):
        assert {(node[place], node[3]) for node in NODES} == {
            (each[place], form) for each in variants() for form in ("static", "symbolic")
        }
    assert {(kind, op) for kind, _, op, _ in NODES} == {(kind, op) for kind, _, op in variants()}
    assert {(name, form) for name, _, form in NETWORKS} == set(product(CHAINS, ("static", "symbolic")))


@parametrize(("kind", "dtype", "op", "form"), NODES)
def test_the_linalg_of_a_node_is_what_the_reference_computes(kind: str, dtype: DType, op: str, form: str) -> None:
    for_each_of(EXAMPLES, graph_for(kind, dtype, form == "symbolic", op), on_this_machine)


@parametrize(("name", "dtype", "form"), NETWORKS)
def test_the_linalg_of_a_network_is_what_the_reference_computes(name: str, dtype: DType, form: str) -> None:
    for_each_of(EXAMPLES, chain_for(name, dtype, form == "symbolic"), on_this_machine)


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", ON_A_GPU)
def test_the_linalg_of_a_network_is_lowered_for_a_gpu(name: str, symbolic: bool) -> None:
    for_each_of(EXAMPLES, chain_for(name, DType.FLOAT32, symbolic), in_the_emulator)


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scatter_begins_with_a_copy_in_its_result(axis: int, reduction: str) -> None:
    b = Builder("scatter")
    rows = b.symbol("rows", 1, 8)
    indices, updates, into = b.input("int32", (2, 3)), b.input("float32", (2, 3)), b.input("float32", (rows, 3))
    b.output(scatter(indices, updates, axis, into=into, reduction=reduction))
    arrays = np.array([[2, 0, 9], [2, -1, 1]], np.int32), np.arange(6, dtype=np.float32).reshape(2, 3)
    for size in (2, 5):
        given = (*arrays, np.full((size, 3), 7, np.float32))
        (found,) = program(unscheduled(b.graph()))(*given, rows=size)
        np.testing.assert_array_equal(found, evaluate(b.graph(), *given, rows=size)[0])
