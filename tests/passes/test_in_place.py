"""Which result a kernel may compute in place of which argument, by its loads and stores alone."""

from __future__ import annotations

import pytest

from passes.plan.in_place import Reuse, reusable
from tensorkiln.build import Builder, Tensor, expand, flip, gather, matmul, pad, relu, shrink, softmax
from tensorkiln.graph import Graph
from tests.dialect.wire import assign, binop, graph_of, placeholder, unary
from tests.passes.modules import bodies, body, output


def pairs(graph: Graph, reuse: Reuse = Reuse.ROWS) -> set[tuple[int, int]]:
    """`(result, argument)` for the one kernel of a graph."""
    return set(reusable(body(graph), reuse))


def inputs(count: int, *shape: object, dtype: str = "float32") -> tuple[Builder, list[Tensor]]:
    b = Builder("kernel")
    return b, [b.input(dtype, shape) for _ in range(count)]  # type: ignore[arg-type]


@pytest.mark.parametrize("reuse", Reuse)
def test_an_element_that_is_read_where_it_is_stored_may_be_overwritten(reuse: Reuse) -> None:
    b, (x, y) = inputs(2, 40, 60)
    assert pairs(output(b, relu(x) * y), reuse) == {(0, 0), (0, 1)}


def test_a_reshape_on_the_way_changes_no_address() -> None:
    b, (x,) = inputs(1, 40, 60)
    assert pairs(output(b, relu(x.reshape(2400)).reshape(60, 40))) == {(0, 0)}


@pytest.mark.parametrize(
    "move", [lambda x: flip(x, 0), lambda x: x.transpose(), lambda x: pad(x, [(1, 0), (0, 0)])[:40]]
)
def test_an_element_that_is_read_elsewhere_may_not(move: object) -> None:
    b, (x,) = inputs(1, 40, 40)
    assert pairs(output(b, -move(x))) == set()  # type: ignore[operator]


def test_an_element_that_is_read_here_and_elsewhere_may_not() -> None:
    b, (x,) = inputs(1, 40, 40)
    assert pairs(output(b, x + flip(x, 0))) == set()


def test_another_size_may_not() -> None:
    b = Builder("kernel")
    x, row = b.input("float32", (40, 60)), b.input("float32", (60,))
    assert pairs(output(b, x + row)) == {(0, 0)}
    b = Builder("kernel")
    assert pairs(output(b, b.input("float32", (1, 60)).expand(40, 60) * 2.0)) == set()


@pytest.mark.parametrize(("dtype", "fits"), [("int32", True), ("uint32", True), ("float64", False), ("int16", False)])
def test_another_type_of_the_same_size_may(dtype: str, fits: bool) -> None:
    b, (x,) = inputs(1, 40, 60)
    assert pairs(output(b, x.cast(dtype))) == ({(0, 0)} if fits else set())


def test_an_operand_read_in_place_under_a_condition_may_be_overwritten() -> None:
    """An assignment to a range: each element is the old one or a new one."""
    graph = graph_of([placeholder(0, [24]), placeholder(1, [8]), assign(2, 0, (1, [4, 12]))], [2])
    assert pairs(graph) == {(0, 0)}
    b, (x,) = inputs(1, 40)
    kept = pad(shrink(x, [(0, 30)]), [(0, 10)])
    assert pairs(output(b, kept * 2.0)) == {(0, 0)}


def test_an_index_from_data_may_not_reach_what_is_overwritten() -> None:
    b = Builder("kernel")
    x, rows = b.input("int32", (40, 8)), b.input("int32", (40, 8))
    assert pairs(output(b, gather(x, rows, 0) + 1)) == {(0, 1)}, "the indices may, the values not"


def test_a_row_that_is_read_before_it_is_stored_may_be_overwritten() -> None:
    b, (x,) = inputs(1, 64, 1000)
    graph = output(b, softmax(x, -1))
    assert pairs(graph) == {(0, 0)}
    assert pairs(graph, Reuse.POINTS) == set(), "that needs the stages of a row to run one after the other"


def test_a_row_that_is_read_again_afterwards_may_not() -> None:
    b, (x,) = inputs(1, 64, 1000)
    shifted = x - expand(x.max(axis=1, keepdims=True), (64, 1000))
    graph = output(b, shifted, x * expand(shifted.sum(axis=1, keepdims=True), (64, 1000)))
    assert pairs(graph) == {(1, 0)}, "the second result comes after everything, the first before the second reads"


def test_another_row_may_not() -> None:
    b, (x,) = inputs(1, 64, 1000)
    largest = flip(x, 0).max(axis=1, keepdims=True)
    found = bodies(output(b, x - expand(largest, (64, 1000))))
    assert len(found) == 1
    assert set(reusable(found[0], Reuse.ROWS)) == set()


def test_a_reduction_is_not_computed_in_place() -> None:
    """It may accumulate where it stores, before it has read everything."""
    b = Builder("kernel")
    x, scale = b.input("float32", (64, 32)), b.input("float32", (64,))
    product = x * expand(scale.reshape(64, 1), (64, 32))
    assert pairs(output(b, product.sum(axis=1))) == set()


def test_a_contraction_may_overwrite_an_addend_but_no_factor() -> None:
    b, (x, w, residual) = inputs(3, 64, 64)
    assert pairs(output(b, matmul(x, w) + residual)) == {(0, 2)}
    b, (x, w) = inputs(2, 64, 64)
    assert pairs(output(b, matmul(x, w) + x)) == set()


def test_one_of_several_results_may_when_all_read_one_element() -> None:
    graph = graph_of([placeholder(0, [40]), unary(1, 0), binop(2, 1, 0)], [1, 2])
    assert pairs(graph) == {(0, 0), (1, 0)}


def test_a_result_may_not_overwrite_what_another_reads_under_other_conditions() -> None:
    """The stores of a point may follow one another, and a load of the second come after the first."""
    b, (x,) = inputs(1, 40)
    negated = -x
    assert pairs(output(b, negated, negated + pad(shrink(x, [(0, 30)]), [(0, 10)]))) == set()


def test_a_symbolic_shape_is_like_any_other() -> None:
    b = Builder("kernel")
    x = b.input("float32", (b.symbol("n", 0, 4096), 1000))
    assert pairs(output(b, softmax(x, -1))) == {(0, 0)}
