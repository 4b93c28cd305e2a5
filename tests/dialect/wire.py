"""Graphs from the bare minimum of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorkiln.expr import evaluate
from tensorkiln.graph import Graph

Node = Mapping[str, Any]
Shape = Sequence[Any]


def placeholder(var: int, shape: Shape, dtype: str = "float32") -> Node:
    return {"node": "placeholder", "out_var": var, "dtype": dtype, "shape": list(shape)}


def buffer(var: int, size: Any, dtype: str = "float32") -> Node:
    return {"node": "buffer", "out_var": var, "size_in_elements": size, "dtype": dtype, "device": "CPU"}


def buffer_view(var: int, base: int, offset: Any, size: Any, dtype: str = "float32") -> Node:
    return {"node": "buffer_view", "buffer_var": base, "offset": offset, "size": size, "dtype": dtype, "out_var": var}


def assign(var: int, target: int, *updates: tuple[int, Any], dtype: str = "float32") -> Node:
    """An assign of `(source, range or None)` pairs."""
    spelled = [[source, target, span] for source, span in updates]
    return {"node": "assign", "target_var": target, "updates": spelled, "out_var": var, "dtype": dtype}


def unary(var: int, source: int, op: str = "neg", dtype: str = "float32") -> Node:
    return {"node": "unary", "op": op, "in_var": source, "out_var": var, "dtype": dtype}


def binop(var: int, a: int, b: int, op: str = "add", dtype: str = "float32") -> Node:
    return {"node": "binop", "op": op, "a_var": a, "b_var": b, "out_var": var, "dtype": dtype}


def inputs_of(graph: Graph, symbols: Mapping[str, int], seed: int = 7) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """Small whole numbers for every input."""
    random = np.random.default_rng(seed)
    types = [graph.types[var] for var in graph.input_vars]
    return [
        random.integers(0, 4, tuple(evaluate(dim, symbols) for dim in tensor.shape)).astype(tensor.dtype.numpy)
        for tensor in types
    ]


def graph_of(
    nodes: Sequence[Node],
    outputs: Sequence[int],
    *,
    inputs: Sequence[int] | None = None,
    shapes: Mapping[int, tuple[str, Shape]] | None = None,
    bounds: Mapping[str, tuple[int, int]] | None = None,
) -> Graph:
    """The graph of these nodes; the inputs are the placeholders unless given, `shapes` becomes `vars_metadata`."""
    placed = [node["out_var"] for node in nodes if node["node"] == "placeholder"]
    return Graph.model_validate(
        {
            "schema": 1,
            "name": "test",
            "nodes": list(nodes),
            "vars_metadata": {
                var: {"dtype": dtype, "shape": list(shape)} for var, (dtype, shape) in (shapes or {}).items()
            },
            "input_vars": placed if inputs is None else list(inputs),
            "output_vars": list(outputs),
            "symbolic_vars": [
                {"name": name, "min_val": low, "max_val": high} for name, (low, high) in (bounds or {}).items()
            ],
        }
    )
