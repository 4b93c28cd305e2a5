"""Loops on the wire: what two graphs inside of a node may be, and the one form that equal loops share."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln.canonical import canonicalize, graph_digest, graph_json
from tensorkiln.errors import CallTurnsError
from tensorkiln.graph import Graph
from tensorkiln.limits import MAX_LOOP_DEPTH
from tensorkiln.reference import evaluate
from tests.contract.wire import Wire, accept, placeholder, refuse, wire

F, I32, B = "float32", "int32", "bool"
LOOP = "/nodes/2"


def region(nodes: list[Wire], outputs: list[int], shape: list[Any]) -> Wire:
    return {
        "nodes": [placeholder(0, F, shape), placeholder(1, I32, []), *nodes],
        "input_vars": [0, 1],
        "output_vars": outputs,
    }


def loop(shape: list[Any] | None = None, most: int = 9) -> Wire:
    """Doubles a row as long as what is carried beside it counts down to 0."""
    dims = ["n"] if shape is None else shape
    zero = {"node": "const_scalar", "value": 0, "out_var": 2, "dtype": I32}
    minus = {"node": "const_scalar", "value": -1, "out_var": 2, "dtype": I32}
    return {
        "node": "while",
        "condition": region(
            [zero, {"node": "binop", "op": "cmplt", "a_var": 2, "b_var": 1, "out_var": 3, "dtype": B}], [3], dims
        ),
        "body": region(
            [
                minus,
                {"node": "binop", "op": "add", "a_var": 1, "b_var": 2, "out_var": 3, "dtype": I32},
                {"node": "binop", "op": "add", "a_var": 0, "b_var": 0, "out_var": 4, "dtype": F},
            ],
            [4, 3],
            dims,
        ),
        "in_vars": [0, 1],
        "output_vars": [2, 3],
        "most": most,
    }


def around(node: Wire, shape: list[Any] | None = None) -> Wire:
    dims = ["n"] if shape is None else shape
    nodes = [placeholder(0, F, dims), placeholder(1, I32, []), node]
    return wire(nodes, [0, 1], [2, 3], {"n": (0, 64)} if "n" in dims else {})


def test_a_loop_carries_what_it_takes() -> None:
    graph = accept(around(loop()))
    assert graph.types[2] == graph.types[0]
    assert graph.types[3] == graph.types[1]
    assert graph.constraints == ()


@pytest.mark.parametrize("turns", [-3, 0, 1, 4, 9])
def test_the_reference_takes_turn_after_turn(turns: int) -> None:
    x = np.arange(5, dtype=np.float32)
    row, rest = evaluate(accept(around(loop())), x, np.int32(turns), n=5)
    np.testing.assert_array_equal(row, x * 2.0 ** max(turns, 0))
    assert rest == min(turns, 0)


def test_a_turn_too_many_is_an_error_that_says_where() -> None:
    with pytest.raises(CallTurnsError) as caught:
        evaluate(accept(around(loop(most=3))), np.zeros(2, np.float32), np.int32(4), n=2)
    assert caught.value.details == {"most": 3}
    assert caught.value.pointers == (LOOP,)


def test_a_loop_value_that_is_only_read_is_no_result() -> None:
    node = loop()
    node["body"]["output_vars"] = [4]
    node["output_vars"] = [2]
    graph = around(node)
    graph["output_vars"] = [2]
    with pytest.raises(CallTurnsError):
        evaluate(accept(graph), np.ones(1, np.float32), np.int32(1), n=1)
    assert evaluate(accept(graph), np.ones(1, np.float32), np.int32(0), n=1)[0] == 1


def changed(change: Callable[[Wire], object], node: Wire | None = None) -> Wire:
    node = copy.deepcopy(loop() if node is None else node)
    change(node)
    return around(node)


def constant(value: Any, dtype: str) -> Wire:
    return {"node": "const_scalar", "value": value, "out_var": 7, "dtype": dtype}


def give(name: str, node: Wire, place: int = 0) -> Callable[[Wire], object]:
    """The graph `name` gives the var 7 of one more node."""

    def change(loop: Wire) -> None:
        loop[name]["nodes"].append(node)
        loop[name]["output_vars"][place] = 7

    return change


def state(known: Wire) -> Callable[[Wire], object]:
    """The body states this of its var 4."""
    return lambda node: node["body"].update(vars_metadata={"4": known})


OWN_SYMBOL = {
    "node": "define_var",
    "sym_var": {"name": "own", "min_val": 1, "max_val": 2},
    "out_var": 7,
    "dtype": I32,
}
OTHER_BOUNDS = {
    "node": "define_var",
    "sym_var": {"name": "n", "min_val": 1, "max_val": 2},
    "out_var": 7,
    "dtype": I32,
}
SINK = {"node": "sink", "deps": [], "dtype": "unit"}
BUFFER = {"node": "buffer", "dtype": F, "size_in_elements": 3, "device": "CPU", "out_var": 7}
REFUSED: list[tuple[str, Callable[[Wire], object], str]] = [
    ("a symbol of its own", give("body", OWN_SYMBOL, 1), "/body"),
    ("no results", lambda node: node.update(output_vars=[]), "/output_vars"),
    ("one result of two", lambda node: node.update(output_vars=[2]), "/body/output_vars"),
    ("more results than values", lambda node: node.update(output_vars=[2, 3, 4]), "/output_vars"),
    ("a result twice", lambda node: node.update(output_vars=[2, 2]), "/out_var"),
    ("an input as a result", lambda node: node.update(output_vars=[2, 0]), "/out_var"),
    ("no turns", lambda node: node.update(most=0), "/most"),
    ("turns without end", lambda node: node.update(most=1 << 31), "/most"),
    ("turns of half", lambda node: node.update(most=1.5), "/most"),
    ("an undefined value", lambda node: node.update(in_vars=[0, 9]), "/in_vars"),
    ("one value less", lambda node: node.update(in_vars=[0], output_vars=[2]), "/condition/input_vars"),
    ("other values", lambda node: node.update(in_vars=[1, 0]), "/condition/input_vars/0"),
    ("an unknown field", lambda node: node["body"].update(schema=1), "/body/schema"),
    ("a broken node", lambda node: node["body"]["nodes"][4].update(op="no"), "/body/nodes/4/op"),
    ("a node that reads outside", lambda node: node["body"]["nodes"][4].update(a_var=100), "/body/nodes/4/a_var"),
    ("a condition that is no bool", lambda node: node["condition"].update(output_vars=[1]), "/condition/output_vars/0"),
    ("two conditions", lambda node: node["condition"].update(output_vars=[3, 3]), "/condition/output_vars"),
    ("a value of another dtype", lambda node: node["body"].update(output_vars=[4, 0]), "/body/output_vars/1"),
    ("a value of another shape", give("body", constant(1.0, F)), "/body/output_vars/0"),
    ("a unit", give("body", {"node": "unique", "id": 1, "out_var": 7, "dtype": "unit"}), "/body/output_vars/0"),
    ("storage", give("body", BUFFER), "/body/nodes/5"),
    ("a sink", lambda node: node["body"]["nodes"].append(SINK), "/body/nodes/5"),
    ("a device", state({"dtype": F, "shape": ["n"], "device": "CPU"}), "/body/vars_metadata/4/device"),
    ("another shape that is stated", state({"dtype": F, "shape": [1, 1]}), "/body/nodes/4"),
    ("an undeclared symbol", lambda node: node["body"]["nodes"][0].update(shape=["m"]), "/body/nodes/0"),
    ("other bounds of a symbol", give("body", OTHER_BOUNDS, 1), "/body/nodes/5/sym_var"),
]


def test_a_loop_is_in_no_kernel() -> None:
    hints = {"name": "k", "local_dims": 0, "upcasted": 0, "dont_use_locals": False}
    head = {"node": "kernel", "ast": loop(), "input_vars": [0, 1], "output_vars": [2, 3], "metadata": hints}
    refuse(around({**head, "out_var": 2, "dtype": F}), "graph.unsupported", f"{LOOP}/ast")


UNSUPPORTED = ("storage", "a sink", "a device")


@pytest.mark.parametrize(("what", "change", "pointer"), REFUSED, ids=[each[0] for each in REFUSED])
def test_invalid_loops_are_refused_by_path(what: str, change: Callable[[Wire], object], pointer: str) -> None:
    refuse(changed(change), "graph.unsupported" if what in UNSUPPORTED else "graph.invalid", LOOP + pointer)


def nested(depth: int) -> Wire:
    """A loop whose body is a loop, and so on."""
    node = loop()
    for _ in range(depth - 1):
        outer = loop()
        outer["body"] = region([{**node, "output_vars": [2, 3]}], [2, 3], ["n"])
        node = outer
    return node


def test_loops_are_inside_of_each_other_up_to_a_limit() -> None:
    accept(around(nested(MAX_LOOP_DEPTH)))
    error = refuse(around(nested(MAX_LOOP_DEPTH + 1)), "limit.exceeded")
    assert error.details == {"limit": "loop_depth", "maximum": MAX_LOOP_DEPTH, "actual": MAX_LOOP_DEPTH + 1}
    error = refuse(around(nested(100)), "limit.exceeded")
    assert error.details["limit"] == "json_depth" or error.details["limit"] == "loop_depth"


def test_nodes_inside_of_loops_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.infer.loops.MAX_NODES", 11)
    error = refuse(around(loop()), "limit.exceeded", LOOP)
    assert error.details == {"limit": "nodes", "maximum": 11, "actual": 12}


def test_a_condition_on_sizes_inside_of_a_loop_is_one_of_the_call() -> None:
    node = loop()
    node["body"]["nodes"][4] = {"node": "expand", "in_var": 0, "new_target_shape": [8], "out_var": 4, "dtype": F}
    (found,) = accept(around(node)).constraints
    assert (str(found.left), str(found.right), found.pointer) == ("n", "8", LOOP)


def renamed(text: str) -> Wire:
    """The same graph in other vars and symbols, with a dead node in its body."""
    graph = json.loads(text.replace('"n"', '"rows"'))
    inside = graph["nodes"][2]["body"]
    inside["nodes"].insert(2, {"node": "unary", "op": "neg", "in_var": 0, "out_var": 50, "dtype": F})
    moved = {0: 30, 1: 20, 2: 10, 3: 40, 4: 5}
    for node in inside["nodes"]:
        for field in ("out_var", "a_var", "b_var", "in_var"):
            if field in node:
                node[field] = moved.get(node[field], node[field])
    inside["input_vars"] = [moved[var] for var in inside["input_vars"]]
    inside["output_vars"] = [moved[var] for var in inside["output_vars"]]
    return graph


def test_equal_loops_have_one_digest() -> None:
    graph = accept(around(loop()))
    found = canonicalize(graph)
    assert graph_json(found).decode() == found.graph.to_json()
    assert graph_digest(canonicalize(found.graph)) == graph_digest(found)
    assert graph_digest(canonicalize(Graph.model_validate(renamed(json.dumps(around(loop())))))) == graph_digest(found)
    other_body = changed(lambda node: node["body"]["nodes"][2].update(value=-2))
    others = [around(loop(most=8)), other_body, around(loop([3]), [3])]
    digests = {graph_digest(canonicalize(Graph.model_validate(other))) for other in others}
    assert len(digests | {graph_digest(found)}) == 4


def test_the_canonical_graph_means_the_same() -> None:
    graph = accept(around(nested(2)))
    x = np.arange(3, dtype=np.float32)
    again = canonicalize(graph).graph
    for one, other in zip(evaluate(graph, x, np.int32(2), n=3), evaluate(again, x, np.int32(2), s0=3), strict=True):
        np.testing.assert_array_equal(one, other)
