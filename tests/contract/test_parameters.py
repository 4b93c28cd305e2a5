"""`parameter_vars`: the inputs that a caller binds once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorkiln.build import Builder
from tensorkiln.canonical import canonicalize
from tensorkiln.canonical.form import graph_digest, graph_json
from tensorkiln.errors import InvalidGraphError
from tensorkiln.graph import Graph, json_schema


def document(parameters: list[Any] | None) -> dict[str, Any]:
    """Two inputs, 4 and 7, and their sum."""
    nodes = [
        {"node": "placeholder", "out_var": 4, "dtype": "float32", "shape": [3]},
        {"node": "placeholder", "out_var": 7, "dtype": "float32", "shape": [3]},
        {"node": "binop", "op": "add", "a_var": 4, "b_var": 7, "out_var": 9, "dtype": "float32"},
    ]
    stated = {} if parameters is None else {"parameter_vars": parameters}
    return {"schema": 1, "nodes": nodes, "input_vars": [4, 7], "output_vars": [9], **stated}


@pytest.mark.parametrize(
    ("parameters", "pointer"),
    [([9], "/parameter_vars/0"), ([4, 5], "/parameter_vars/1"), ([7, 7], "/parameter_vars/1")],
)
def test_a_parameter_is_an_input_and_stands_once(parameters: list[int], pointer: str) -> None:
    with pytest.raises(InvalidGraphError, match="is not in input_vars, or appears twice") as raised:
        Graph.model_validate_json(json.dumps(document(parameters)))
    assert raised.value.pointers == (pointer,)


@pytest.mark.parametrize("parameters", [["4"], [-1], 4, [True], None])
def test_parameters_are_vars(parameters: Any) -> None:
    with pytest.raises(InvalidGraphError):
        Graph.model_validate_json(json.dumps({**document(None), "parameter_vars": parameters}))


def test_a_graph_keeps_its_parameters_through_json() -> None:
    graph = Graph.model_validate_json(json.dumps(document([7])))
    assert graph.parameter_vars == (7,)
    assert Graph.model_validate_json(graph.to_json()) == graph
    assert "parameter_vars" not in json.loads(Graph.model_validate(document([])).to_json())


def test_parameters_are_part_of_the_digest_whatever_their_order_and_names() -> None:
    without, one, both, turned = (Graph.model_validate(document(stated)) for stated in (None, [7], [4, 7], [7, 4]))
    digests = [graph_digest(canonicalize(graph)) for graph in (without, one, both, turned)]
    assert len(set(digests)) == 3
    assert digests[2] == digests[3]
    canonical = canonicalize(one)
    assert canonical.graph.parameter_vars == (1,)
    assert graph_json(canonical) == canonical.graph.to_json().encode()


def test_the_schema_names_the_extension() -> None:
    assert json_schema()["x-extensions"]["graph"] == ["parameter_vars"]


def test_a_builder_declares_parameters_among_its_inputs() -> None:
    b = Builder("linear")
    x, weights = b.input("float32", (2, 3)), b.parameter("float32", (3, 4), "weights")
    b.output(x @ weights)
    assert list(b.inputs) == ["input0", "weights"]
    assert b.graph().parameter_vars == (weights.var,)
