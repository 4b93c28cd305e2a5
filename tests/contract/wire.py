"""Wire graphs of placeholders and a few nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tensorkiln.errors import TensorkilnError
from tensorkiln.graph import Graph

OUT = 100
Wire = dict[str, Any]
Type = tuple[str, Sequence[Any]]
DOUBLE: Wire = {
    "schema": 1,
    "name": "double",
    "nodes": [
        {"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": ["n"]},
        {"node": "binop", "op": "add", "a_var": 0, "b_var": 0, "out_var": 1, "dtype": "float32"},
    ],
    "input_vars": [0],
    "output_vars": [1],
    "symbolic_vars": [{"name": "n", "min_val": 1, "max_val": 4096}],
}
"""x + x of x: float32[n]; 1 <= n <= 4096."""


def placeholder(var: int, dtype: str, shape: Sequence[Any]) -> Wire:
    return {"node": "placeholder", "out_var": var, "dtype": dtype, "shape": list(shape)}


def wire(
    nodes: Sequence[Wire],
    inputs: Sequence[int],
    outputs: Sequence[int],
    symbols: Mapping[str, tuple[int, int]] | None = None,
    metadata: Mapping[int, Type] | None = None,
) -> Wire:
    return {
        "schema": 1,
        "name": "test",
        "nodes": list(nodes),
        "vars_metadata": {
            str(var): {"dtype": dtype, "shape": list(shape), "device": None}
            for var, (dtype, shape) in (metadata or {}).items()
        },
        "input_vars": list(inputs),
        "output_vars": list(outputs),
        "symbolic_vars": [
            {"name": name, "min_val": low, "max_val": high} for name, (low, high) in (symbols or {}).items()
        ],
    }


def around(
    node: Wire,
    inputs: Sequence[Type],
    symbols: Mapping[str, tuple[int, int]] | None = None,
    stated: Type | None = None,
) -> Wire:
    """`node`, which reads the vars 0, 1, … and defines var 100, after a placeholder for each of `inputs`."""
    nodes = [placeholder(var, dtype, shape) for var, (dtype, shape) in enumerate(inputs)]
    metadata = {} if stated is None else {OUT: stated}
    outputs = [] if node["dtype"] == "unit" else [OUT]
    return wire([*nodes, node], range(len(inputs)), outputs, symbols, metadata)


def accept(graph: Wire) -> Graph:
    """The graph, after the same from JSON text."""
    parsed = Graph.model_validate_json(json.dumps(graph))
    assert Graph.model_validate(graph) == parsed
    assert Graph.model_validate_json(parsed.to_json()) == parsed
    return parsed


def refuse(graph: object, code: str = "graph.invalid", pointer: str | None = None) -> TensorkilnError:
    """The error for a graph that is refused alike as an object and as JSON text."""
    with pytest.raises(TensorkilnError) as from_object:
        Graph.model_validate(graph)
    with pytest.raises(TensorkilnError) as from_text:
        Graph.model_validate_json(json.dumps(graph))
    assert from_object.value.code == from_text.value.code == code, str(from_text.value)
    if pointer is not None:
        assert pointer in from_text.value.pointers, from_text.value.pointers
        assert pointer in from_object.value.pointers, from_object.value.pointers
    return from_text.value
