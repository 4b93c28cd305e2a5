"""The optional fields of `scatter`: absent, they change neither the JSON nor the digest of a graph."""

from __future__ import annotations

import json
from typing import Any

from tensorkiln.canonical import canonicalize, graph_digest
from tensorkiln.canonical.form import graph_json
from tensorkiln.graph import Graph, json_schema

PLAIN = {"node": "scatter", "indices_var": 0, "updates_var": 1, "axis": 0, "shape": [9]}


def graph_of(**fields: Any) -> Graph:
    types = (("int32", 3), ("float32", 3), ("float32", 9))
    nodes: list[dict[str, Any]] = [
        {"node": "placeholder", "out_var": var, "dtype": dtype, "shape": [size]}
        for var, (dtype, size) in enumerate(types)
    ]
    nodes.append({**PLAIN, **fields, "out_var": 3, "dtype": "float32"})
    document = {"schema": 1, "nodes": nodes, "input_vars": [0, 1, 2], "output_vars": [3]}
    return Graph.model_validate_json(json.dumps(document))


def digest(graph: Graph) -> str:
    return graph_digest(canonicalize(graph))


def test_defaults_are_left_out_of_the_json() -> None:
    plain, stated = graph_of(), graph_of(init_var=None, reduction="none")
    for graph in (plain, stated):
        written = json.loads(graph.to_json())["nodes"][3]
        assert written == {**PLAIN, "out_var": 3, "dtype": "float32"}
        assert b"reduction" not in graph_json(canonicalize(graph))
    assert digest(plain) == digest(stated)


def test_stated_fields_come_through_json_and_count_in_the_digest() -> None:
    graphs = [graph_of(), graph_of(init_var=2), *(graph_of(init_var=2, reduction=kind) for kind in ("add", "max"))]
    for graph in graphs:
        assert Graph.model_validate_json(graph.to_json()) == graph
        canonical = canonicalize(graph)
        assert graph_json(canonical) == canonical.graph.to_json().encode()
    assert len({digest(graph) for graph in graphs}) == len(graphs)


def test_the_schema_names_the_extension() -> None:
    assert json_schema()["x-extensions"]["scatter"] == ["init_var", "reduction"]
