"""The linalg of every kernel, lowered by the passes of MLIR alone, against the reference: a second implementation.

What differs from it in the strategies' code is the strategies' fault; what both get wrong was traced wrongly.
"""

from __future__ import annotations

import pytest

from tensorkiln.dtypes import DType
from tensorkiln.reference import evaluate
from tests.compiled import program, unscheduled
from tests.emulated import TARGET, Emulation

from .cases import CHAINS, Case, chain_for, compare, graph_for
from .cases.drawn import for_each_of, parametrize
from .cases.kinds import variants
from .cases.turns import EXAMPLES

ON_A_GPU = ("softmax", "convolution_by_movement", "scatter_of_computed", "attention", "gather_of_computed")


def on_this_machine(case: Case) -> None:
    found = program(unscheduled(case.graph))(*case.arrays, **case.symbols)
    compare(found, evaluate(case.graph, *case.arrays, **case.symbols), case.tolerance)


def in_the_emulator(case: Case) -> None:
    made = unscheduled(case.graph, TARGET, dump_stages=True)
    found = Emulation(made, case.arrays, case.symbols).run()
    compare(found, evaluate(case.graph, *case.arrays, **case.symbols), case.tolerance)


@parametrize(
    ("kind", "dtype", "op", "symbolic"), ((*variant, bool(number % 2)) for number, variant in enumerate(variants()))
)
def test_the_linalg_of_a_node_is_what_the_reference_computes(kind: str, dtype: DType, op: str, symbolic: bool) -> None:
    for_each_of(EXAMPLES, graph_for(kind, dtype, symbolic, op), on_this_machine)


@parametrize(
    ("name", "dtype", "symbolic"),
    (
        (name, dtype, bool((number + place) % 2))
        for number, (name, chain) in enumerate(CHAINS.items())
        for place, dtype in enumerate(chain.dtypes)
    ),
)
def test_the_linalg_of_a_network_is_what_the_reference_computes(name: str, dtype: DType, symbolic: bool) -> None:
    for_each_of(EXAMPLES, chain_for(name, dtype, symbolic), on_this_machine)


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", ON_A_GPU)
def test_the_linalg_of_a_network_is_lowered_for_a_gpu(name: str, symbolic: bool) -> None:
    for_each_of(EXAMPLES, chain_for(name, DType.FLOAT32, symbolic), in_the_emulator)
