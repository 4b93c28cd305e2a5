"""Every node kind, on every dtype and variant, static and symbolic: compiled code against the reference.

For this machine, in guarded memory and then by the runtime, and for a GPU, whose code is emulated: by turns, or all of
it with KILN_EXAMPLES.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from hypothesis.strategies import SearchStrategy

from tensorkiln.dtypes import DType
from tensorkiln.reference import evaluate
from tests import checked, emulated

from .cases import CHAINS, Case, chain_for, compare, graph_for
from .cases.drawn import for_each_of, parametrize
from .cases.kinds import KINDS, variants
from .cases.turns import EXAMPLES, MACHINES, of_kind, of_network

RUNS: dict[str, Callable[..., tuple[Any, ...]]] = {"cpu": checked.run_graph, "gpu": emulated.run}
NODES = [(*each, *how) for each in variants() for how in of_kind(MACHINES, 4, *each)]
NETWORKS = [
    (name, dtype, *how)
    for name, chain in CHAINS.items()
    for dtype in chain.dtypes
    for how in of_network(MACHINES, 4, name, dtype)
]


def agree(machine: str, cases: SearchStrategy[Case]) -> None:
    """What is run of every case is what the reference evaluates."""

    def agrees(case: Case) -> None:
        expected = evaluate(case.graph, *case.arrays, **case.symbols)
        compare(RUNS[machine](case.graph, *case.arrays, **case.symbols), expected, case.tolerance)

    for_each_of(EXAMPLES, cases, agrees)


def test_the_suite_covers_every_kind_and_dtype() -> None:
    assert len(KINDS) == 45
    assert {dtype for _, dtype, _ in variants()} == set(DType)


def test_every_kind_op_dtype_and_network_is_static_and_symbolic_on_each_machine() -> None:
    """And every variant of a kind is one of these at least."""
    for names in ((0,), (1,), (0, 2)):
        met = {(*(node[name] for name in names), *node[3:]) for node in NODES}
        assert len(met) == len(MACHINES) * len({tuple(node[name] for name in names) for node in NODES})
    assert {(name, *how) for name, _, *how in NETWORKS} == {(name, *how) for name, how in product(CHAINS, MACHINES)}
    assert {node[:3] for node in NODES} == set(variants())


@parametrize(("kind", "dtype", "op", "form", "machine"), NODES, drawn=3)
def test_a_node_computes_what_the_reference_does(kind: str, dtype: DType, op: str, form: str, machine: str) -> None:
    agree(machine, graph_for(kind, dtype, form == "symbolic", op))


@parametrize(("name", "dtype", "form", "machine"), NETWORKS, drawn=2)
def test_a_network_computes_what_the_reference_does(name: str, dtype: DType, form: str, machine: str) -> None:
    agree(machine, chain_for(name, dtype, form == "symbolic"))
