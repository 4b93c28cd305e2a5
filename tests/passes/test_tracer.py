"""What one element of a value becomes: loads at addresses of the loops, under the conditions that masks ask for."""

from __future__ import annotations

import numpy as np
import pytest

from passes.loops.domain import domain_of, traced_value
from passes.loops.index_space import IndexSpace
from passes.loops.scalar_dag import Apply, Choose, Constant, Guard, InRange, Interner, IsTrue, Load, Node
from passes.trace.tracer import Tracer
from passes.trace.traces import TRACES
from tensorkiln import expr
from tensorkiln.build import Builder, cat, flip, gather, pad, shrink, view
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.expr import symbol
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests.compiled import run
from tests.dialect.wire import graph_of, placeholder
from tests.passes.modules import decomposed, output, read_graph

ROW, J = symbol("i0"), symbol("i1")


def traced(graph: Graph) -> tuple[Node, Interner]:
    """The element of the one result of a graph at its loops `i0, i1, …`."""
    function = read_graph(decomposed(graph))
    (root,) = function.results
    space, nodes = IndexSpace(function.symbols), Interner()
    domain = domain_of(root, space, "i")
    numbers = {value: number for number, value in enumerate(function.arguments)}
    value = traced_value(root)
    return Tracer(space, numbers, TRACES, nodes).define(value, domain.index(value.shape)), nodes


def test_a_pad_is_a_load_that_is_guarded_on_both_sides() -> None:
    b = Builder("pad")
    element, _ = traced(output(b, pad(b.input("float32", (4, 6)), [(0, 0), (2, 3)])))
    assert isinstance(element, Load)
    assert element.address == 6 * ROW + J - 2
    assert set(element.conditions) == {J - 2, 7 - J}


def test_a_pad_of_one_side_is_guarded_there_only() -> None:
    b = Builder("pad")
    element, _ = traced(output(b, pad(b.input("float32", (4,)), [(3, 0)])))
    assert isinstance(element, Load)
    assert element.conditions == (ROW - 3,)


def test_a_pad_of_something_computed_loads_and_computes_under_the_guard() -> None:
    b = Builder("pad")
    element, _ = traced(output(b, pad(b.input("float32", (4,)) + 1.0, [(1, 0)])))
    assert isinstance(element, Guard)
    assert element.conditions == (ROW - 1,)
    assert isinstance(element.value, Apply)
    assert isinstance(element.value.args[0], Load)
    assert element.value.args[0].conditions == (ROW - 1,)


def test_a_pad_that_is_cut_off_again_costs_nothing() -> None:
    b = Builder("cut")
    x = b.input("float32", (4, 6))
    element, _ = traced(output(b, shrink(pad(x, [(1, 2), (3, 4)]), [(1, 5), (3, 9)])))
    assert isinstance(element, Load)
    assert (element.address, element.conditions) == (6 * ROW + J, ())


def test_a_value_that_is_masked_out_everywhere_is_zero() -> None:
    b = Builder("cut")
    element, nodes = traced(output(b, shrink(pad(b.input("float32", (4,)), [(8, 0)]), [(0, 8)])))
    assert element is nodes.constant(DType.FLOAT32, 0.0)


def test_a_flip_is_a_negative_stride() -> None:
    b = Builder("flip")
    n = b.symbol("n", 1, 64)
    element, _ = traced(output(b, flip(b.input("float32", (n, 6)), 1)))
    assert isinstance(element, Load)
    assert (element.address, element.conditions) == (6 * ROW - J + 5, ())


def test_a_permutation_and_an_expansion_are_strides() -> None:
    b = Builder("strides")
    x = b.input("float32", (4, 1, 6)).permute(2, 0, 1).expand(6, 4, 5)
    element, _ = traced(output(b, x))
    assert isinstance(element, Load)
    assert (element.address, element.conditions) == (ROW + 6 * J, ())


def test_a_strided_view_is_an_address() -> None:
    b = Builder("view")
    element, _ = traced(output(b, view(b.input("float32", (30,)), (4, 3), (7, 2), 1)))
    assert isinstance(element, Load)
    assert (element.address, element.conditions) == (7 * ROW + 2 * J + 1, ())


def masked_view() -> Graph:
    tracker = {
        "views": [{"shape": [4, 8], "strides": [8, 1], "offset": -16, "mask": [[2, 4], [1, 7]]}],
        "shape": [4, 8],
    }
    node = {"node": "view", "in_var": 0, "shape_tracker": tracker, "out_var": 1, "dtype": "float32"}
    return graph_of([placeholder(0, [16]), node], [1])


def test_a_factor_of_a_row_is_loaded_whatever_the_guard_of_its_elements_says() -> None:
    b = Builder("pad")
    x, factor = b.input("float32", (4, 6)), b.input("float32", (4, 1))
    element, _ = traced(output(b, pad(x * factor, [(0, 0), (1, 2)])))
    assert isinstance(element, Guard)
    product = element.value
    assert isinstance(product, Apply)
    image, scale = product.args
    assert isinstance(image, Load)
    assert isinstance(scale, Load)
    assert set(image.conditions) == set(element.conditions) == {J - 1, 6 - J}
    assert (scale.address, scale.conditions) == (ROW, ())


def test_a_row_that_may_not_exist_is_loaded_under_the_guard() -> None:
    b = Builder("pad")
    x, factor = b.input("float32", (4, 6)), b.input("float32", (4, 1))
    element, _ = traced(output(b, pad(x * factor, [(1, 0), (1, 2)])))
    assert isinstance(element, Guard)
    assert isinstance(element.value, Apply)
    scale = element.value.args[1]
    assert isinstance(scale, Load)
    assert ROW - 1 in scale.conditions


def test_a_row_repeated_in_a_pad_is_a_load_under_its_conditions() -> None:
    b = Builder("pad")
    element, _ = traced(output(b, pad(b.input("float32", (4, 1)).expand((4, 6)), [(0, 0), (1, 2)])))
    assert isinstance(element, Load)
    assert element.address == ROW
    assert set(element.conditions) == {J - 1, 6 - J}


def test_a_masked_view_is_a_guarded_load() -> None:
    element, _ = traced(masked_view())
    assert isinstance(element, Load)
    assert element.address == 8 * ROW + J - 16
    assert set(element.conditions) == {ROW - 2, J - 1, 6 - J}


def test_a_gather_is_guarded_by_its_index() -> None:
    b = Builder("gather")
    element, nodes = traced(output(b, gather(b.input("float32", (9, 6)), b.input("int32", (4, 6)), 0)))
    assert isinstance(element, Load)
    (condition,) = element.conditions
    assert isinstance(condition, InRange)
    assert condition.extent == 9
    assert isinstance(condition.value, Load)
    assert (condition.value.operand, condition.value.address) == (1, 6 * ROW + J)
    assert element.address == 6 * symbol(nodes.dynamic_name(condition.value, condition.extent)) + J


def test_an_index_is_guarded_by_its_position_and_its_mask() -> None:
    node = {"node": "index", "in_var": 0, "idx_var": 1, "valid_var": 2, "out_var": 3, "dtype": "float32"}
    places = [placeholder(0, [3, 4]), placeholder(1, [5], "int64"), placeholder(2, [5], "bool")]
    element, _ = traced(graph_of([*places, node], [3]))
    assert isinstance(element, Load)
    assert [type(condition) for condition in element.conditions] == [IsTrue, InRange]


def test_a_cat_chooses_the_part_and_reads_it_under_its_bounds() -> None:
    b = Builder("cat")
    element, _ = traced(output(b, cat([b.input("float32", (3,)), b.input("float32", (4,))], 0)))
    assert isinstance(element, Choose)
    assert element.conditions == (2 - ROW,)
    assert isinstance(element.first, Load)
    assert isinstance(element.second, Load)
    assert (element.first.operand, element.first.address, element.first.conditions) == (0, ROW, (2 - ROW,))
    assert (element.second.operand, element.second.address, element.second.conditions) == (1, ROW - 3, (ROW - 3,))


def test_a_part_without_elements_is_left_out() -> None:
    b = Builder("cat")
    element, _ = traced(output(b, cat([b.input("float32", (size,)) for size in (0, 3, 4)], 0)))
    assert isinstance(element, Choose)
    assert isinstance(element.first, Load)
    assert isinstance(element.second, Load)
    assert (element.first.operand, element.second.operand) == (1, 2)


def test_a_common_subexpression_is_one_node() -> None:
    b = Builder("common")
    x = b.input("float32", (4,))
    element, _ = traced(output(b, (x * x).reshape(2, 2).reshape(4) + x * x))
    assert isinstance(element, Apply)
    assert element.args[0] is element.args[1]


def test_a_cast_to_the_same_dtype_is_nothing() -> None:
    node = {"node": "cast", "in_var": 0, "target_dtype": "float32", "out_var": 1, "dtype": "float32"}
    element, _ = traced(graph_of([placeholder(0, [4]), node], [1]))
    assert isinstance(element, Load)


def test_a_literal_needs_no_memory() -> None:
    b = Builder("literal")
    element, _ = traced(output(b, b.constant(-0.0, "float32").reshape(1).expand(5)))
    assert isinstance(element, Constant)
    assert str(element.value) == "-0.0"


def test_untraceable_values_are_refused_with_their_node() -> None:
    node = {"node": "scatter", "indices_var": 0, "updates_var": 1, "axis": 0, "shape": [8], "out_var": 2}
    places = [placeholder(0, [4], "int32"), placeholder(1, [4])]
    with pytest.raises(UnsupportedGraphError, match="scatter cannot be computed element by element") as raised:
        traced(graph_of([*places, {**node, "dtype": "float32"}], [2]))
    assert list(raised.value.pointers) == ["/nodes/2"]


def restrictions() -> tuple[Tracer, expr.Dim]:
    space = IndexSpace({})
    i = space.add("i", 8)
    return Tracer(space, {}, TRACES, Interner()), i


def test_conditions_that_always_hold_are_dropped() -> None:
    tracer, i = restrictions()
    assert tracer.restrict((), i, expr.sub(7, i)) == ((), ())
    assert tracer.restrict((), expr.sub(i, 1)) == ((i - 1,), (i - 1,))


def test_a_condition_that_never_holds_says_so() -> None:
    tracer, i = restrictions()
    assert tracer.restrict((), expr.sub(i, 8)) is None


def test_a_condition_is_added_once() -> None:
    tracer, i = restrictions()
    known = (expr.sub(i, 1),)
    assert tracer.restrict(known, i - 1, i - 1, i - 2) == ((i - 1, i - 2), (i - 1, i - 2))


def test_one_run_time_index_into_two_extents_keeps_both_guards() -> None:
    """The same position is an index below 4 into one value and below 10 into another, whose pad must stay guarded."""
    b = Builder("two_extents")
    b.symbol("n", 0, 9)
    small, short = b.input("float32", (4,)), b.input("float32", (5,))
    position = b.symbol_value("n").reshape(1)
    whole = gather(small, position.expand(10), 0) + pad(short, [(0, 5)])
    graph = output(b, gather(whole, position, 0))
    arrays = [np.arange(1, 5, dtype=np.float32), np.arange(10, 15, dtype=np.float32)]
    element, _ = traced(graph)
    pads = [node for node in _below(element) if isinstance(node, Load) and node.operand == 1]
    assert all(any(isinstance(condition, expr.Expr) for condition in load.conditions) for load in pads)
    for n in range(4):
        assert np.array_equal(run(graph, *arrays, n=n)[0], evaluate(graph, *arrays, n=n)[0])


def _below(node: Node) -> list[Node]:
    found = [node]
    if isinstance(node, Guard):
        found += _below(node.value)
    if isinstance(node, Apply):
        found += [below for arg in node.args for below in _below(arg)]
    return found
