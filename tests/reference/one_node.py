"""A graph of one node, evaluated by the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tensorkiln import reference
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph

Array = npt.NDArray[Any]


def array(values: object, dtype: str) -> Array:
    return np.array(values, DType(dtype).numpy)


def bfloat16(values: object) -> Array:
    return np.array(values, ml_dtypes.bfloat16)


def placeholder(var: int, value: Array, shape: Sequence[object] | None = None) -> dict[str, Any]:
    dtype = DType.from_numpy(value.dtype)
    return {
        "node": "placeholder",
        "out_var": var,
        "dtype": dtype,
        "shape": list(value.shape if shape is None else shape),
    }


def graph_of(
    nodes: Sequence[Mapping[str, Any]],
    inputs: Sequence[int],
    outputs: Sequence[int],
    metadata: Mapping[int, tuple[str, Sequence[object]]] | None = None,
    symbols: Mapping[str, tuple[int, int]] | None = None,
) -> Graph:
    return Graph.model_validate(
        {
            "schema": 1,
            "name": "test",
            "nodes": list(nodes),
            "vars_metadata": {
                var: {"dtype": dtype, "shape": list(shape), "device": None}
                for var, (dtype, shape) in (metadata or {}).items()
            },
            "input_vars": list(inputs),
            "output_vars": list(outputs),
            "symbolic_vars": [
                {"name": name, "min_val": low, "max_val": high} for name, (low, high) in (symbols or {}).items()
            ],
        }
    )


def run_node(
    node: Mapping[str, Any],
    *inputs: Array,
    shape: Sequence[int] | None = None,
    symbols: Mapping[str, tuple[int, int]] | None = None,
    values: Mapping[str, int] | None = None,
) -> Array:
    """The value of one node whose operands are vars 0, 1, … (the inputs); its out var is 100.

    `shape`, when given, is stated as the metadata of the out var.
    """
    places = [placeholder(var, value) for var, value in enumerate(inputs)]
    whole: dict[str, Any] = {"out_var": 100, **node}
    metadata: dict[int, tuple[str, Sequence[object]]] = {} if shape is None else {100: (whole["dtype"], shape)}
    graph = graph_of([*places, whole], range(len(inputs)), [100], metadata, symbols)
    (result,) = reference.evaluate(graph, *inputs, **(values or {}))
    return result


def binop(op: str, a: Array, b: Array, dtype: str | None = None) -> Array:
    own = DType.from_numpy(a.dtype)
    return run_node({"node": "binop", "op": op, "a_var": 0, "b_var": 1, "dtype": dtype or own}, a, b)


def unary(op: str, x: Array) -> Array:
    return run_node({"node": "unary", "op": op, "in_var": 0, "dtype": DType.from_numpy(x.dtype)}, x)


def cast(x: Array, target: str) -> Array:
    return run_node({"node": "cast", "in_var": 0, "target_dtype": target, "dtype": target}, x)


def check(actual: Array, expected: Array) -> None:
    """Same dtype, shape and bytes; any NaN stands for any NaN."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if expected.dtype.kind in "fV" and expected.dtype.itemsize:
        wide, wanted = actual.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_array_equal(wide, wanted)
        real = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(wide)[real], np.signbit(wanted)[real])
    else:
        np.testing.assert_array_equal(actual, expected)
