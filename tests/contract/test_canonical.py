"""The canonical form: the same for graphs that mean the same, and meaning the same itself."""

import copy
import json
import re
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorkiln import reference
from tensorkiln.canonical import Canonical, canonicalize, graph_digest
from tensorkiln.expr import evaluate as evaluate_dim
from tensorkiln.graph import Graph
from tests.contract.random_graphs import SYMBOLS, disguised, random_graph
from tests.contract.test_definitions import assign, buffer
from tests.contract.test_inferred_types import CASES, I32, F, N, expr, node
from tests.contract.wire import Type, Wire, accept, around, placeholder, wire


def digest(graph: Wire) -> str:
    return graph_digest(canonicalize(accept(graph)))


def kinds(canonical: Canonical) -> list[str]:
    return [found.node for found in canonical.graph.nodes]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_a_disguised_graph_has_the_same_canonical_form(seed: int) -> None:
    random = Random(seed)
    graph = random_graph(random)
    plain, other = canonicalize(accept(graph)), canonicalize(accept(disguised(random, graph)))
    assert plain.graph == other.graph
    assert graph_digest(plain) == graph_digest(other)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_the_canonical_form_computes_the_same_and_is_its_own(seed: int) -> None:
    random = Random(seed)
    graph = accept(random_graph(random))
    found = canonicalize(graph)
    assert canonicalize(found.graph).graph == found.graph
    values = {name: random.randint(*bounds) for name, bounds in SYMBOLS.items()}
    shapes = [tuple(evaluate_dim(dim, values) for dim in graph.types[var].shape) for var in graph.input_vars]
    arrays = [np.random.default_rng(seed).integers(-9, 9, shape, np.int32) for shape in shapes]
    expected = reference.evaluate(graph, *arrays, **values)
    renamed = {canonical: values[name] for canonical, name in found.symbols.items()}
    for one, other in zip(expected, reference.evaluate(found.graph, *arrays, **renamed), strict=True):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_the_way_back_names_the_users_vars_and_nodes(seed: int) -> None:
    graph = accept(random_graph(Random(seed)))
    found = canonicalize(graph)
    assert sorted(found.vars) == list(range(len(found.vars)))
    for mine, theirs in zip(found.graph.nodes, found.nodes, strict=True):
        assert mine.node == graph.nodes[theirs].node
        if mine.out_var is not None:
            assert found.vars[mine.out_var] == graph.nodes[theirs].out_var
    assert [found.vars[var] for var in found.graph.input_vars] == list(graph.input_vars)
    assert [found.vars[var] for var in found.graph.output_vars] == list(graph.output_vars)
    assert set(found.symbols.values()) == set(graph.symbols)


X, Y = placeholder(0, F, [3]), placeholder(1, F, [3])


def binop(op: str, a: int, b: int, out: int) -> Wire:
    return {"node": "binop", "op": op, "a_var": a, "b_var": b, "out_var": out, "dtype": F}


def test_different_programs_have_different_digests() -> None:
    graphs = [
        wire([X, Y, binop("sub", 0, 1, 2)], [0, 1], [2]),
        wire([X, Y, binop("sub", 1, 0, 2)], [0, 1], [2]),
        wire([X, Y, binop("add", 0, 1, 2)], [0, 1], [2]),
        wire([X, Y, binop("sub", 0, 1, 2)], [1, 0], [2]),
        wire([X, Y, binop("sub", 0, 1, 2)], [0, 1], [2, 2]),
        wire([X, Y, binop("sub", 0, 1, 2)], [0, 1], [2, 0]),
        wire([X, Y, binop("sub", 0, 1, 2)], [0, 1], [2], {"n": (1, 2)}),
        wire([X, Y, binop("sub", 0, 1, 2)], [0, 1], [2], {"n": (1, 3)}),
        wire([X, Y, binop("add", 0, 0, 2)], [0, 1], [2]),
        wire([X, binop("add", 0, 0, 2)], [0], [2]),
    ]
    digests = [digest(graph) for graph in graphs]
    # The sub of (x, y) is the sub of (y, x) with the inputs the other way round: what is called x does not matter.
    assert digests[1] == digests[3]
    assert len(set(digests)) == len(graphs) - 1


def test_dead_nodes_and_sinks_go_and_unused_inputs_stay() -> None:
    dead = [binop("add", 0, 1, 5), {"node": "sink", "deps": [5], "dtype": "unit"}]
    found = canonicalize(accept(wire([X, Y, *dead, binop("add", 0, 0, 2)], [1, 0], [2])))
    assert kinds(found) == ["placeholder", "placeholder", "binop"]
    assert found.nodes == (1, 0, 4)


def test_identical_nodes_stay_distinct() -> None:
    twice = wire([buffer(0, 3), buffer(1, 3), assign(0, 1, 2)], [], [0, 1])
    once = wire([buffer(0, 3), assign(0, 0, 2)], [], [0, 0])
    assert digest(twice) != digest(once)
    assert kinds(canonicalize(accept(twice))) == ["buffer", "buffer", "assign"]


def test_an_assign_stays_where_its_target_is_an_output_or_read_later() -> None:
    read_before, read_after = binop("add", 0, 0, 5), binop("add", 0, 0, 6)
    nodes = [X, Y, read_before, assign(0, 1, 4), read_after]
    assert "assign" in kinds(canonicalize(accept(wire(nodes, [0, 1], [6]))))
    assert "assign" in kinds(canonicalize(accept(wire(nodes, [0, 1], [0]))))
    assert "assign" in kinds(canonicalize(accept(wire(nodes, [0, 1], [4]))))
    assert "assign" not in kinds(canonicalize(accept(wire(nodes, [0, 1], [5]))))


def test_an_assign_stays_where_an_earlier_view_of_its_target_is_read() -> None:
    view = {"node": "buffer_view", "buffer_var": 2, "size": 2, "offset": 1, "out_var": 3, "dtype": F}
    read = {"node": "unary", "op": "neg", "in_var": 3, "out_var": 5, "dtype": F}
    nodes = [X, buffer(2, 3), view, assign(2, 0, 4), read]
    assert kinds(canonicalize(accept(wire(nodes, [0], [5])))) == [
        "placeholder",
        "buffer",
        "buffer_view",
        "assign",
        "unary",
    ]


def test_a_reader_stays_before_the_assign_that_it_must_not_see() -> None:
    nodes = [X, Y, binop("mul", 0, 0, 5), assign(0, 1, 4)]
    assert kinds(canonicalize(accept(wire(nodes, [0, 1], [4, 5])))) == ["placeholder", "placeholder", "binop", "assign"]


def test_an_assign_to_its_own_out_var_gets_a_var_of_its_own() -> None:
    nodes = [placeholder(2, F, [3]), buffer(1, 3), assign(1, 2, 1), binop("add", 1, 1, 5)]
    found = canonicalize(accept(wire(nodes, [2], [1, 5])))
    assert len({node.out_var for node in found.graph.nodes}) == 4
    assert digest(wire(nodes, [2], [1, 5])) == digest(
        wire([nodes[0], nodes[1], assign(1, 2, 7), nodes[3]], [2], [1, 5])
    )


def test_destinations_and_repeated_placeholders_make_no_difference() -> None:
    plain = wire([X, Y, binop("add", 0, 1, 2)], [0, 1], [2])
    assert digest(wire([X, Y, buffer(2, 3), Y, binop("add", 0, 1, 2), X], [0, 1], [2])) == digest(plain)


@pytest.mark.parametrize("device", ["CPU", "cuda", "ROCM:3"])
def test_the_name_of_the_home_makes_no_difference(device: str) -> None:
    there = {**buffer(1, 3), "device": device}
    copied = {"node": "copy", "in_var": 0, "target_device": device, "clone": False, "out_var": 2, "dtype": F}
    graph = wire([X, there, copied, binop("add", 2, 1, 3)], [0, 1], [3])
    found = canonicalize(accept(graph))
    assert {kind.device for kind in found.graph.types.values()} == {"CPU"}
    named = wire([X, binop("add", 0, 0, 2)], [0], [2])
    named["vars_metadata"] = {"0": {"dtype": F, "shape": [3], "device": device}}
    assert digest(named) == digest(wire([X, binop("add", 0, 0, 2)], [0], [2]))


def test_a_copy_elsewhere_keeps_its_device() -> None:
    copied = {"node": "copy", "in_var": 0, "target_device": "cuda:1", "clone": False, "out_var": 2, "dtype": F}
    found = canonicalize(accept(wire([buffer(0, 3), copied], [], [2])))
    assert [found.graph.types[var].device for var in (0, 1)] == ["CPU", "CUDA:1"]


def test_symbols_are_named_by_first_use_and_unused_ones_by_their_bounds() -> None:
    symbols = {"z": (0, 9), "unused": (0, 5), "a": (1, 4), "idle": (0, 3)}
    found = canonicalize(accept(wire([placeholder(0, F, ["a", "z"])], [0], [0], symbols)))
    assert found.symbols == {"s0": "a", "s1": "z", "s2": "idle", "s3": "unused"}
    assert [(found.min_val, found.max_val) for found in found.graph.symbolic_vars] == [(1, 4), (0, 9), (0, 3), (0, 5)]


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")])
def test_symbols_that_one_dim_holds_together_are_told_apart_by_the_others(names: tuple[str, ...]) -> None:
    one, two, three = names
    together = expr("add", one, expr("mul", 2, two), three)
    graph = wire([placeholder(0, F, [together]), placeholder(1, F, [three])], [0, 1], [0], dict.fromkeys(names, (1, 4)))
    reference_graph = wire(
        [placeholder(0, F, [expr("add", "x", expr("mul", 2, "y"), "w")]), placeholder(1, F, ["w"])],
        [0, 1], [0], dict.fromkeys(["w", "x", "y"], (1, 4)),
    )  # fmt: skip
    assert digest(graph) == digest(reference_graph)


def test_a_bind_leaves_its_bounds_even_where_it_is_dead() -> None:
    define = {"node": "define_var", "sym_var": {"name": "n", "min_val": 1, "max_val": 9}, "out_var": 5, "dtype": I32}
    bind = {"node": "bind", "sym_var": 5, "value": 4, "out_var": 6, "dtype": I32}
    found = canonicalize(accept(wire([placeholder(0, F, ["n"]), define, bind], [0], [0])))
    assert kinds(found) == ["placeholder"]
    assert found.graph.symbols == {"s0": (4, 4)}


def conditions(graph: Graph, symbols: dict[str, str]) -> set[tuple[Any, ...]]:
    texts = {canonical: name for canonical, name in symbols.items()}
    found: set[tuple[Any, ...]] = set()
    for condition in graph.constraints:
        left, right = str(condition.left), str(condition.right)
        for canonical, name in texts.items():
            left, right = left.replace(canonical, name), right.replace(canonical, name)
        found.add((condition.kind, left, right))
    return found


def test_conditions_on_the_call_stay_though_their_node_is_dead_or_only_metadata_states_them() -> None:
    dead = {"node": "reshape", "in_var": 0, "new_shape": ["m", 2], "out_var": 5, "dtype": F}
    kept = {"node": "unary", "op": "neg", "in_var": 0, "out_var": 6, "dtype": F}
    symbols = {"n": (1, 9), "m": (1, 9), "k": (1, 9)}
    graph = accept(wire([placeholder(0, F, ["n"]), dead, kept], [0], [6], symbols, {6: (F, ["k"])}))
    assert len(graph.constraints) == 2
    found = canonicalize(graph)
    assert conditions(found.graph, found.symbols) == conditions(graph, {})


def test_constants_of_one_value_have_one_spelling() -> None:
    def constant(value: Any) -> Wire:
        return wire([node("const_scalar", F, value=value)], [], [100])

    assert digest(constant(1)) == digest(constant(1.0))
    assert digest(constant(0.0)) != digest(constant(-0.0))


def test_the_name_of_the_graph_goes() -> None:
    graph = wire([X], [0], [0])
    other = copy.deepcopy(graph)
    other["name"] = "another"
    assert digest(graph) == digest(other)
    assert canonicalize(accept(graph)).graph.name == ""


@pytest.mark.parametrize(("tested", "inputs"), [case[:2] for case in CASES], ids=[case[0]["node"] for case in CASES])
def test_every_node_kind_has_a_canonical_form(tested: Wire, inputs: list[Type]) -> None:
    if tested["node"] == "sink":
        tested = {name: value for name, value in tested.items() if name != "out_var"}
    graph = accept(around(tested, inputs, N))
    found = canonicalize(graph)
    assert canonicalize(found.graph).graph == found.graph
    assert Graph.model_validate_json(found.graph.to_json()) == found.graph
    text = re.sub(r'"n"(?!:)', '"q"', json.dumps(around(tested, inputs, N)))
    assert graph_digest(canonicalize(Graph.model_validate_json(text))) == graph_digest(found)
    for canonical, var in found.vars.items():
        renamed = str(found.graph.types[canonical].shape).replace("s0", "n")
        assert renamed == str(graph.types[var].shape)
