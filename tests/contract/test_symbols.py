"""Symbolic dims: what is proven, what is refused, and what is left for the call."""

from typing import Any

import pytest

from tensorkiln.expr import from_wire
from tests.contract.test_inferred_types import F, expr, node, tracker
from tests.contract.test_structure import exceeded
from tests.contract.wire import OUT, Type, Wire, accept, around, placeholder, refuse, wire

Bounds = dict[str, tuple[int, int]]


def constraints(tested: Wire, inputs: list[Type], symbols: Bounds, stated: Type | None = None) -> list[tuple[Any, ...]]:
    graph = accept(around(tested, inputs, symbols, stated))
    return [(found.kind, found.left, found.right, found.pointer) for found in graph.constraints]


ADD = node("binop", F, op="add", a_var=0, b_var=1)


def test_shapes_that_are_equal_as_polynomials_need_no_condition() -> None:
    left, right = expr("mul", "n", expr("add", "n", 2)), expr("add", expr("mul", "n", "n"), expr("mul", 2, "n"))
    assert constraints(ADD, [(F, [left]), (F, [right])], {"n": (0, 9)}) == []


def test_shapes_that_may_differ_are_a_condition_on_the_call() -> None:
    found = constraints(ADD, [(F, ["n"]), (F, ["m"])], {"n": (1, 9), "m": (1, 9)})
    assert found == [("eq", from_wire("n"), from_wire("m"), "/nodes/2")]


def test_shapes_that_always_differ_are_refused() -> None:
    refuse(around(ADD, [(F, ["n"]), (F, ["m"])], {"n": (1, 4), "m": (5, 9)}), pointer="/nodes/2/a_var")
    refuse(around(ADD, [(F, ["n"]), (F, [expr("add", "n", 1)])], {"n": (1, 4)}), pointer="/nodes/2/a_var")


def test_metadata_that_may_differ_is_a_condition_on_the_call() -> None:
    symbols = {"n": (1, 9), "m": (1, 9)}
    found = constraints(node("contiguous", F, in_var=0), [(F, ["n"])], symbols, (F, ["m"]))
    assert found == [("eq", from_wire("n"), from_wire("m"), "/nodes/1")]


@pytest.mark.parametrize("stated", [(F, ["n", 1]), (F, [10]), ("int32", ["n"])])
def test_metadata_that_differs_is_refused(stated: Type) -> None:
    refuse(around(node("contiguous", F, in_var=0), [(F, ["n"])], {"n": (1, 9)}, stated), pointer="/nodes/1")


def test_a_dimension_that_may_be_negative_is_a_condition_on_the_call() -> None:
    found = constraints(node("contiguous", F, in_var=0), [(F, [expr("sub", "n", 3)])], {"n": (0, 9)})
    assert found == [("ge", from_wire(expr("sub", "n", 3)), 0, "/nodes/0")]


def test_a_dimension_that_is_always_negative_is_refused() -> None:
    refuse(around(node("contiguous", F, in_var=0), [(F, [expr("sub", "n", 9)])], {"n": (0, 8)}), pointer="/nodes/0")


def test_the_same_condition_is_stated_once() -> None:
    adds = [{**ADD, "out_var": var} for var in (5, 6, 7)]
    symbols = {"n": (1, 9), "m": (1, 9)}
    nodes = [placeholder(0, F, ["n"]), placeholder(1, F, ["m"]), *adds]
    assert len(accept(wire(nodes, [0, 1], [5, 6, 7], symbols)).constraints) == 1


@pytest.mark.parametrize(
    ("tested", "expected"),
    [
        (node("shrink", F, in_var=0, limits=[[2, "m"]]), [("ge", "m", 2), ("ge", "n", "m")]),
        (node("pad", F, in_var=0, pad_width=[[expr("sub", "m", 2), 0]]), [("ge", expr("sub", "m", 2), 0)]),
        (node("gep", F, in_var=0, indices=[3]), [("ge", "n", 4)]),
        (node("reshape", F, in_var=0, new_shape=["m", 2]), [("eq", "n", expr("mul", "m", 2))]),
        (node("expand", F, in_var=0, new_target_shape=["m"]), [("eq", "n", "m")]),
        (
            node("buffer_view", F, buffer_var=0, size="m", offset=1),
            [("ge", expr("mul", 4, expr("sub", "n", 1)), expr("mul", 4, "m"))],
        ),
        (node("view", F, in_var=0, shape_tracker=tracker(["m"], [1])), [("ge", expr("sub", "n", "m"), 0)]),
        (
            node("bitcast", "float64", in_var=0, target_dtype="float64"),
            [("eq", expr("floormod", expr("mul", 4, "n"), 8), 0)],
        ),
        (node("assign", F, target_var=0, updates=[[0, 0, [0, 5]]]), [("ge", "n", 5), ("eq", "n", 5)]),
    ],
    ids=lambda value: value["node"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_requirements_of_nodes_on_symbols_are_conditions_on_the_call(tested: Wire, expected: list[Any]) -> None:
    found = constraints(tested, [(F, ["n"])], {"n": (1, 9), "m": (1, 9)})
    wanted = [(kind, from_wire(left), from_wire(right), "/nodes/1") for kind, left, right in expected]
    assert found == wanted


def test_a_view_that_may_be_empty_asks_nothing_of_its_addresses_then() -> None:
    reads_past_the_end = node("view", F, in_var=0, shape_tracker=tracker(["m"], [0], 3))
    (only,) = constraints(reads_past_the_end, [(F, [3])], {"m": (0, 9)})
    kind, left, right, _ = only
    assert (kind, right) == ("ge", 0)
    assert left == from_wire(expr("neg", expr("max", 0, expr("min", 1, "m"))))


def test_a_strided_view_of_all_elements_is_proven_inside() -> None:
    flipped = tracker(["n", "m"], [expr("neg", "m"), 1], expr("mul", expr("sub", "n", 1), "m"))
    assert (
        constraints(node("view", F, in_var=0, shape_tracker=flipped), [(F, ["n", "m"])], {"n": (1, 9), "m": (1, 9)})
        == []
    )


@pytest.mark.parametrize(
    "tested",
    [
        node("reshape", F, in_var=0, new_shape=["k"]),
        node("pad", F, in_var=0, pad_width=[["k", 0]]),
        node("view", F, in_var=0, shape_tracker=tracker([3], ["k"])),
        node("view", F, in_var=0, shape_tracker=tracker([3], [1], 0, [[0, "k"]])),
        node("buffer", F, size_in_elements="k", device="CPU"),
        node("scatter", F, indices_var=0, updates_var=0, axis=0, shape=["k"]),
    ],
    ids=lambda tested: tested["node"],
)
def test_a_symbol_that_is_not_declared_is_refused(tested: Wire) -> None:
    kind = "int32" if tested["node"] == "scatter" else F
    error = refuse(around({**tested, "dtype": kind}, [(kind, [3])], {"n": (1, 4)}))
    assert "the symbol k is not declared" in error.message


def test_a_symbol_without_values_or_declared_twice_is_refused() -> None:
    refuse(wire([], [], [], {"n": (2, 1)}), pointer="/symbolic_vars/0")
    twice = wire([], [], [], {"n": (1, 2)})
    twice["symbolic_vars"] *= 2
    refuse(twice, pointer="/symbolic_vars/1")


def test_a_bind_decides_what_can_be_proven() -> None:
    define = {
        "node": "define_var",
        "sym_var": {"name": "n", "min_val": 1, "max_val": 9},
        "out_var": 1,
        "dtype": "int32",
    }
    bind = {"node": "bind", "sym_var": 1, "value": 4, "out_var": 2, "dtype": "int32"}
    reshape = {"node": "reshape", "in_var": 0, "new_shape": [2, 2], "out_var": 3, "dtype": F}
    nodes = [placeholder(0, F, ["n"]), define, bind, reshape]
    assert accept(wire(nodes, [0], [3], {"n": (1, 9)})).constraints == ()


def test_an_expression_that_multiplies_out_to_too_many_terms_is_refused() -> None:
    symbols = {f"s{number}": (0, 1) for number in range(32)}
    dim = expr("mul", *[expr("add", *symbols)] * 12)
    exceeded(wire([placeholder(0, F, [dim])], [0], [], symbols), "expression_terms", 256, 16896)


def test_a_shape_that_comes_to_too_many_terms_is_refused() -> None:
    left, right = [f"l{number}" for number in range(16)], [f"r{number}" for number in range(16)]
    symbols = dict.fromkeys(left + right, (0, 9))
    halves = [expr("mul", expr("add", *left), expr("add", *half)) for half in (right[:8], right[8:])]
    inputs: list[Type] = [("bool", [dim]) for dim in (*halves, "l0")]
    assert accept(around(node("cat", "bool", in_vars=[0, 1], axis=0), inputs, symbols))
    exceeded(around(node("cat", "bool", in_vars=[0, 1, 2], axis=0), inputs, symbols), "expression_terms", 256, 257)


def test_a_shape_whose_element_count_has_too_many_terms_is_refused() -> None:
    symbols = {f"s{number}": (0, 1 << 20) for number in range(32)}
    wide = expr("add", *symbols)
    exceeded(wire([placeholder(0, F, [wide, wide, wide, wide])], [0], [], symbols), "expression_terms", 256, 16896)


def test_a_value_whose_axes_are_padded_is_refused_where_its_size_has_too_many_terms() -> None:
    def padded(axes: int) -> Wire:
        names = [f"s{number}" for number in range(axes)]
        pad = node("pad", F, in_var=0, pad_width=[[0, 1]] * axes)
        return around(pad, [(F, names)], dict.fromkeys(names, (1, 2)))

    assert accept(padded(8))
    for axes in (9, 10):
        error = exceeded(padded(axes), "expression_terms", 256, 2**axes)
        assert error.pointers == ("/nodes/1",)
        assert "the product of the dimensions" in error.message


def test_the_element_count_is_within_the_limit_from_either_end() -> None:
    wide = [expr("add", *(f"s{number}" for number in range(first, first + 8))) for first in (0, 8, 16)]
    symbols = {f"s{number}": (0, 9) for number in range(24)}
    for shape in (wide, wide[::-1]):
        exceeded(wire([placeholder(0, F, shape)], [0], [], symbols), "expression_terms", 256, 512)


def test_a_dimension_is_refused_where_its_canonical_form_is_too_deep() -> None:
    dim: Any = "n"
    for _ in range(16):
        dim = expr("floordiv", expr("add", expr("mul", 2, dim), "m", expr("mul", -3, "k")), "m")
    symbols = {"n": (1, 64), "m": (1, 9), "k": (1, 2)}
    tested = wire([placeholder(0, F, [dim])], [0], [], symbols)
    assert exceeded(tested, "expression_depth", 64, 65).pointers == ("/nodes/0/shape/0",)


def test_the_out_var_of_a_node_may_be_stated_with_an_equal_expression() -> None:
    doubled = node("cat", F, in_vars=[0, 0], axis=0)
    graph = accept(around(doubled, [(F, ["n"])], {"n": (0, 9)}, (F, [expr("add", "n", "n")])))
    assert graph.types[OUT].shape == (from_wire(expr("mul", 2, "n")),)
    assert graph.constraints == ()
