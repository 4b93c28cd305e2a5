"""Nodes about other nodes: kernel, sink, multi, markers, symbols, constants, custom."""

from typing import Any

import numpy as np
import pytest

from tensorkiln import reference
from tests.reference.one_node import array, bfloat16, check, graph_of, placeholder, run_node

X = array([[1, 2], [3, 4]], "float32")
HINTS = {"name": "k", "local_dims": 0, "upcasted": 0, "dont_use_locals": False}


def _kernel(ast: dict[str, Any], inputs: list[int], outputs: list[int]) -> dict[str, Any]:
    head = {"node": "kernel", "ast": ast, "input_vars": inputs, "output_vars": outputs, "metadata": HINTS}
    return {**head, "out_var": outputs[0], "dtype": "float32"}


def test_a_kernel_computes_the_node_it_wraps() -> None:
    ast = {"node": "binop", "op": "sub", "a_var": 1, "b_var": 0, "out_var": 5, "dtype": "float32"}
    nodes = [placeholder(0, X), placeholder(1, X), _kernel(ast, [1, 0], [5])]
    (out,) = reference.evaluate(graph_of(nodes, [0, 1], [5]), X, X * 3)
    check(out, X * 2)


def test_kernels_nest() -> None:
    ast = {"node": "unary", "op": "neg", "in_var": 0, "out_var": 5, "dtype": "float32"}
    nodes = [placeholder(0, X), _kernel(_kernel(ast, [0], [5]), [0], [5])]
    check(reference.evaluate(graph_of(nodes, [0], [5]), X)[0], -X)


def test_a_kernel_around_a_sink_hands_its_dependencies_on() -> None:
    ast = {"node": "sink", "deps": [1, 0], "dtype": "unit"}
    nodes = [placeholder(0, X), placeholder(1, X), _kernel(ast, [1, 0], [5, 6])]
    first, second = reference.evaluate(graph_of(nodes, [0, 1], [5, 6]), X, X * 3)
    check(first, X * 3)
    check(second, X)


def test_a_sink_has_no_value_and_changes_nothing() -> None:
    nodes = [placeholder(0, X), {"node": "sink", "deps": [0], "dtype": "unit"}]
    check(reference.evaluate(graph_of(nodes, [0], [0]), X)[0], X)


def _multi(axis: int | None, mask: list[bool], *shards: np.ndarray) -> np.ndarray:
    variables = list(range(len(shards)))
    node = {"node": "multi", "device_vars": variables, "axis": axis, "real_mask": mask, "dtype": "float32"}
    return run_node(node, *shards)


def test_multi_joins_the_real_shards() -> None:
    check(_multi(0, [True, False, True], X, X * 5, X * 9), array([[1, 2], [3, 4], [9, 18], [27, 36]], "float32"))
    check(_multi(1, [True, True], X, X), array([[1, 2, 1, 2], [3, 4, 3, 4]], "float32"))


def test_multi_without_an_axis_is_the_first_whatever_the_mask() -> None:
    check(_multi(None, [False, True], X, X), X)


@pytest.mark.parametrize("node", ["contiguous", "contiguous_backward", "detach", "fuse", "noop"])
def test_hints_are_the_identity(node: str) -> None:
    check(run_node({"node": node, "in_var": 0, "dtype": "float32"}, X), X)


def test_unroll_is_the_identity() -> None:
    check(run_node({"node": "unroll", "loop_var": 0, "unroll_factor": 4, "dtype": "float32"}, X), X)


def test_a_noop_of_nothing_is_zero() -> None:
    check(run_node({"node": "noop", "in_var": None, "dtype": "int32"}), array(0, "int32"))
    check(run_node({"node": "noop", "in_var": None, "dtype": "int32"}, shape=[2]), array([0, 0], "int32"))


def test_markers_read_as_0_and_as_their_id() -> None:
    check(run_node({"node": "device", "device_name": "CPU", "dtype": "int32"}), array(0, "int32"))
    check(run_node({"node": "unique", "id": 7, "dtype": "int32"}), array(7, "int32"))


def test_a_symbol_reads_as_its_value() -> None:
    node = {"node": "define_var", "sym_var": {"name": "n", "min_val": 1, "max_val": 9}, "dtype": "int32"}
    check(run_node(node, symbols={"n": (1, 9)}, values={"n": 4}), array(4, "int32"))


def test_bind_reads_as_its_value() -> None:
    symbol = {
        "node": "define_var",
        "sym_var": {"name": "n", "min_val": 1, "max_val": 9},
        "out_var": 0,
        "dtype": "int32",
    }
    bind = {"node": "bind", "sym_var": 0, "value": 5, "out_var": 1, "dtype": "int32"}
    graph = graph_of([symbol, bind], [], [1, 0], symbols={"n": (1, 9)})
    bound, defined = reference.evaluate(graph, n=5)
    check(bound, array(5, "int32"))
    check(defined, array(5, "int32"))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2**64 - 1, "uint64"),
        (-(2**63), "int64"),
        (True, "bool"),
        (0.1, "float32"),
        (65504, "float16"),
        ("-inf", "float64"),
    ],
)
def test_a_constant_scalar_is_exact(value: Any, dtype: str) -> None:
    wanted = float(value) if isinstance(value, str) else value
    check(run_node({"node": "const_scalar", "value": value, "dtype": dtype}), array(wanted, dtype))


def test_a_constant_may_be_nan_and_rounds_once() -> None:
    check(run_node({"node": "const_scalar", "value": "nan", "dtype": "float32"}), array(float("nan"), "float32"))
    value = 1 + 2.0**-8 + 2.0**-40
    check(run_node({"node": "const_scalar", "value": value, "dtype": "bfloat16"}), bfloat16(1 + 2.0**-7))


def test_a_vector_constant_has_one_axis_or_those_of_its_metadata() -> None:
    node = {"node": "vconst", "values": [1, 2, 3, 4], "dtype": "int8"}
    check(run_node(node), array([1, 2, 3, 4], "int8"))
    check(run_node(node, shape=[2, 2]), array([[1, 2], [3, 4]], "int8"))
    check(run_node({"node": "vconst", "values": [], "dtype": "float32"}), array([], "float32"))


def _sort(x: np.ndarray, dtype: str, axis: int, descending: int) -> np.ndarray:
    attributes = [
        {"name": "axis", "kind": "int", "value": axis},
        {"name": "descending", "kind": "int", "value": descending},
    ]
    return run_node({"node": "custom", "op_name": "sort", "in_vars": [0], "attributes": attributes, "dtype": dtype}, x)


def test_a_custom_operation_runs_its_registered_evaluator() -> None:
    x = array([[3, 1, 2], [9, 7, 8]], "int32")
    check(_sort(x, "int32", 1, 0), array([[1, 2, 3], [7, 8, 9]], "int32"))
    check(_sort(x, "int32", 0, 1), array([[9, 7, 8], [3, 1, 2]], "int32"))
    nan = float("nan")
    check(_sort(array([nan, 2, 1], "float32"), "float32", 0, 0), array([1, 2, nan], "float32"))


def test_unit_values_pass_through_and_their_valid_is_the_mask() -> None:
    tracker = {"views": [{"shape": [3], "strides": [1], "offset": 0, "mask": [[1, 2]]}], "shape": [3]}
    nodes: list[dict[str, Any]] = [
        {"node": "const_scalar", "value": None, "out_var": 0, "dtype": "unit"},
        {"node": "unique", "id": 7, "out_var": 1, "dtype": "unit"},
        {"node": "device", "device_name": "CPU", "out_var": 2, "dtype": "unit"},
        {"node": "noop", "in_var": None, "out_var": 3, "dtype": "unit"},
        {"node": "contiguous", "in_var": 3, "out_var": 4, "dtype": "unit"},
        {"node": "sink", "deps": [0, 1, 2, 4], "dtype": "unit"},
    ]
    masks: list[int] = []
    for var in (0, 1, 2, 4):
        masks.append(10 + var)
        head = {"node": "valid", "in_var": var, "out_var": 10 + var, "dtype": "bool"}
        nodes.append({**head, "shape_tracker": tracker})
    for mask in reference.evaluate(graph_of(nodes, [], masks, {3: ("unit", [2, 3])})):
        check(mask, array([False, True, False], "bool"))
