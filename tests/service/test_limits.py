"""Every published limit, over HTTP: what is at the limit is taken, what is one beyond is told all three figures."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from service.wire.body import MAX_BATCH, MAX_TARGETS
from tensorkiln import limits
from tests.contract.test_inferred_types import expr
from tests.contract.test_structure import kernel, nested_expression
from tests.contract.wire import Wire, placeholder, wire
from tests.service.bodies import V3, compile_body, encoded, graph
from tests.service.server import Server

Body = Callable[[int], bytes]
Graph = Callable[[int], Wire]


def of_rank(rank: int) -> Wire:
    return wire([placeholder(0, "float32", [1] * rank)], [0], [0])


def of_terms(count: int) -> Wire:
    """The products of sixteen symbols with fifteen others, and as many of the symbols as are missing."""
    left, right = [f"l{number}" for number in range(16)], [f"r{number}" for number in range(15)]
    products = expr("mul", expr("add", *left), expr("add", *right))
    dim = expr("add", products, *(left + right)[: count - 16 * 15])
    return wire([placeholder(0, "float32", [dim])], [0], [0], dict.fromkeys(left + right, (0, 1)))


def of_elements(count: int) -> Wire:
    """A value that is never stored, so that its bytes do not matter."""
    expand = {"node": "expand", "in_var": 0, "new_target_shape": [count], "out_var": 1, "dtype": "float32"}
    return wire([placeholder(0, "float32", [1]), expand], [0], [0])


def of_loops(depth: int) -> Wire:
    """Loops that never begin, one in the body of the other."""
    given = placeholder(0, "bool", [])
    inside: Wire = {"nodes": [given], "input_vars": [0], "output_vars": [0]}
    node: Wire = {}
    for _ in range(depth):
        body = inside if not node else {**inside, "nodes": [given, node], "output_vars": [1]}
        node = {"node": "while", "condition": inside, "body": body, "in_vars": [0], "output_vars": [1], "most": 1}
    return wire([given, node], [0], [1])


def of_requests(count: int) -> bytes:
    """Requests of which each is refused; at the limit the batch is not."""
    return encoded({"requests": [{}] * count})


def of_brackets(depth: int) -> bytes:
    """Not a graph; at the limit it is read far enough for that to be said."""
    return b'{"graph":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


GRAPHS: dict[str, Graph] = {
    "nodes": lambda count: wire([{"node": "sink", "deps": [], "dtype": "unit"}] * count, [], []),
    "rank": of_rank,
    "symbols": lambda count: wire([], [], [], {f"n{number}": (0, 1) for number in range(count)}),
    "expression_depth": lambda depth: wire(
        [placeholder(0, "float32", [nested_expression(depth)])], [0], [], {"n": (0, 0)}
    ),
    "expression_terms": of_terms,
    "kernel_depth": lambda depth: wire([placeholder(0, "float32", [3]), kernel(depth)], [0], [1]),
    "loop_depth": of_loops,
    "elements": of_elements,
    "buffer_bytes": lambda count: wire([placeholder(0, "uint8", [count])], [0], [0]),
}


def validation(make: Graph) -> Body:
    return lambda size: encoded({"graph": make(size)})


CASES: dict[str, tuple[int, str, Body]] = {
    **{name: (getattr(limits, f"MAX_{name.upper()}"), "/validate", validation(make)) for name, make in GRAPHS.items()},
    "json_depth": (limits.MAX_JSON_DEPTH, "/validate", of_brackets),
    "body_bytes": (limits.MAX_BODY_BYTES, "/validate", lambda count: encoded({"graph": graph(rows=2)}).ljust(count)),
    "targets": (MAX_TARGETS, "/compile", lambda count: encoded(compile_body(graph(rows=2), [V3] * count))),
    "batch": (MAX_BATCH, "/jobs:batch", of_requests),
}
OF_THE_PROCESS = {"compile_deadline_s", "compile_memory_mib", "compile_output_mib"}
"""Limits of a compile itself: the tests of faults reach them."""
OF_THE_COMPILER = {"operations", "code_bytes"}
"""Limits of what a compile makes: the tests of passes reach them."""
OF_CODED = {"body_ratio", "body_window_bytes", "body_frames"}
"""Limits of bodies in a content coding: the tests of codings reach them."""


def test_every_limit_of_the_capabilities_is_tested(server: Server) -> None:
    stated = server.http.get("/capabilities").json()["limits"]
    assert {name: stated[name] for name in stated.keys() - OF_THE_PROCESS - OF_THE_COMPILER - OF_CODED} == {
        name: maximum for name, (maximum, _, _) in CASES.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_values_at_a_limit_are_accepted_and_those_over_it_get_limit_maximum_and_actual(
    server: Server, name: str
) -> None:
    maximum, path, make = CASES[name]
    taken = server.post(path, make(maximum))
    wanted = (422, "graph.invalid") if name == "json_depth" else (200, None)
    assert (taken.status_code, taken.json().get("code")) == wanted, taken.text
    answer = server.post(path, make(maximum + 1))
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (413, "limit.exceeded"), answer.text
    assert problem["details"] == {"limit": name, "maximum": maximum, "actual": maximum + 1}
    assert problem["retryable"] is False
    assert str(maximum) in problem["detail"]


def test_far_beyond_a_limit_the_figures_are_still_true(server: Server) -> None:
    depth = 10_000_000
    details = server.post("/validate", b"[" * depth).json()["details"]
    assert details == {"limit": "json_depth", "maximum": limits.MAX_JSON_DEPTH, "actual": depth}
    text = json.dumps({"graph": of_rank(10_000)}).encode()
    assert server.post("/validate", text).json()["details"] == {"limit": "rank", "maximum": 16, "actual": 10_000}
    wide = graph(rows=10**300)
    assert server.post("/validate", encoded({"graph": wide})).json()["code"] in ("limit.exceeded", "graph.invalid")
