"""What reading a large graph leaves out would have changed nothing."""

from __future__ import annotations

import json
from random import Random

import pytest

from tensorkiln.canonical import canonicalize, graph_json
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph, VarMetadata
from tensorkiln.infer import infer
from tensorkiln.nodes.base import record_of
from tests.bench.large_graph import large_graph
from tests.contract.random_graphs import random_graph
from tests.contract.test_golden_digests import graphs_by_kind
from tests.contract.test_inferred_types import CASES, N
from tests.contract.wire import Type, Wire, around

GRAPHS: dict[str, Wire] = {
    **graphs_by_kind(),
    **{f"random {seed}": random_graph(Random(seed)) for seed in range(20)},
    "large": json.loads(large_graph()),
}
KINDS: list[tuple[Wire, list[Type]]] = [
    ({name: value for name, value in tested.items() if (tested["node"], name) != ("sink", "out_var")}, inputs)
    for tested, inputs, _ in CASES
]
STATIC = [case for case in KINDS if '"n"' not in json.dumps(case)]


@pytest.mark.parametrize(
    "wire",
    [*GRAPHS.values(), *(around(*case, N) for case in KINDS)],
    ids=[*GRAPHS, *(str(tested["node"]) for tested, _ in KINDS)],
)
def test_the_json_of_a_canonical_graph_is_that_of_any_graph(wire: Wire) -> None:
    found = canonicalize(Graph.model_validate(wire))
    assert graph_json(found).decode() == found.graph.to_json()
    assert Graph.model_validate_json(graph_json(found)) == found.graph


@pytest.mark.parametrize("wire", GRAPHS.values(), ids=GRAPHS)
def test_a_canonical_graph_has_what_is_inferred_from_it(wire: Wire) -> None:
    _same_as_inferred(wire)


@pytest.mark.parametrize(("tested", "inputs"), STATIC, ids=[tested["node"] for tested, _ in STATIC])
def test_a_canonical_graph_without_symbols_has_what_is_inferred_from_it(tested: Wire, inputs: list[Type]) -> None:
    _same_as_inferred(around(tested, inputs))


def _same_as_inferred(wire: Wire) -> None:
    graph = canonicalize(Graph.model_validate(wire)).graph
    found = infer(graph)
    assert graph.types == found.types
    assert list(graph.types) == list(found.types)
    assert graph.constraints == found.constraints
    assert graph.symbols == found.symbols


@pytest.mark.parametrize("wire", graphs_by_kind().values(), ids=graphs_by_kind())
def test_a_record_made_of_its_fields_is_one_that_pydantic_makes(wire: Wire) -> None:
    unset = VarMetadata(dtype=DType.FLOAT32, shape=(4,))
    for node in (unset, *Graph.model_validate(wire).nodes):
        mine, pydantics = record_of(type(node), dict(vars(node)), set(node.model_fields_set)), node.model_copy()
        assert type(mine) is type(pydantics)
        assert mine == pydantics
        assert mine.model_fields_set == pydantics.model_fields_set
        assert mine.model_extra == pydantics.model_extra
        assert list(vars(mine)) == list(vars(pydantics))
        assert mine.model_dump_json() == pydantics.model_dump_json()
        assert mine.model_copy() == mine
