"""Scalar programs: equal nodes are one object, unequal ones never are."""

from __future__ import annotations

import math

import pytest

from passes.loops.scalar_dag import Interner, children, indices, walk
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import symbol

F32, INDEX = DType.FLOAT32, symbol("i")


@pytest.fixture
def nodes() -> Interner:
    return Interner()


def test_zeros_of_both_signs_are_two_constants(nodes: Interner) -> None:
    plus, minus = nodes.constant(F32, 0.0), nodes.constant(F32, -0.0)
    assert plus is nodes.constant(F32, 0.0)
    assert plus is not minus
    assert math.copysign(1, minus.value) == -1


def test_nan_is_one_constant(nodes: Interner) -> None:
    assert nodes.constant(F32, math.nan) is nodes.constant(F32, float("nan"))


def test_literals_of_different_types_are_different(nodes: Interner) -> None:
    found = {
        id(nodes.constant(DType.BOOL, True)),
        id(nodes.constant(DType.INT32, 1)),
        id(nodes.constant(DType.INT64, 1)),
        id(nodes.constant(F32, 1.0)),
        id(nodes.constant(F32, 1)),
    }
    assert len(found) == 5


def test_equal_nodes_are_one_object(nodes: Interner) -> None:
    first = nodes.load(F32, 0, INDEX + 1, ())
    assert first is nodes.load(F32, 0, expr.add(1, INDEX), ())
    total = nodes.apply(F32, "binop", ("add", F32, F32), first, nodes.constant(F32, 1.0))
    assert total is nodes.apply(F32, "binop", ("add", F32, F32), first, nodes.constant(F32, 1.0))
    assert nodes.in_range(first, 4) is nodes.in_range(first, 4)
    assert nodes.guard((INDEX - 3,), total) is nodes.guard((INDEX - 3,), total)


def test_nodes_that_differ_in_one_part_are_not_equal(nodes: Interner) -> None:
    load = nodes.load(F32, 0, INDEX, ())
    assert load is not nodes.load(F32, 1, INDEX, ())
    assert load is not nodes.load(F32, 0, 2 * INDEX, ())
    assert load is not nodes.load(F32, 0, INDEX, (INDEX - 1,))
    assert nodes.apply(F32, "unary", ("neg",), load) is not nodes.apply(F32, "unary", ("exp2",), load)
    one = nodes.apply(F32, "binop", ("sub", F32, F32), load, nodes.constant(F32, 1.0))
    assert one is not nodes.apply(F32, "binop", ("sub", F32, F32), nodes.constant(F32, 1.0), load)
    assert nodes.in_range(load, 4) is not nodes.in_range(load, 5)


def test_a_guard_or_a_choice_without_conditions_is_its_value(nodes: Interner) -> None:
    first, second = nodes.constant(F32, 1.0), nodes.constant(F32, 2.0)
    assert nodes.guard((), first) is first
    assert nodes.choose((), first, second) is first


def test_an_index_read_at_run_time_has_one_name(nodes: Interner) -> None:
    first, second = nodes.load(DType.INT32, 0, INDEX, ()), nodes.load(DType.INT32, 0, INDEX + 1, ())
    assert nodes.dynamic_name(first, 8) == nodes.dynamic_name(first, 8)
    assert nodes.dynamic_name(first, 8) != nodes.dynamic_name(second, 8)
    assert nodes.dynamic_name(first, 8) != nodes.dynamic_name(first, 9)
    assert nodes.dynamic[nodes.dynamic_name(second, 8)] is second


def test_a_walk_visits_each_node_once_through_conditions_and_addresses(nodes: Interner) -> None:
    position = nodes.load(DType.INT32, 1, INDEX, ())
    name = nodes.dynamic_name(position, 8)
    flag = nodes.load(DType.BOOL, 2, INDEX, ())
    row = nodes.load(F32, 0, expr.mul(symbol(name), 4), (nodes.in_range(position, 8), nodes.is_true(flag)))
    total = nodes.apply(F32, "binop", ("add", F32, F32), row, row)
    found = list(walk((total, row), nodes))
    assert {id(node) for node in found} == {id(node) for node in (total, row, position, flag)}
    assert len(found) == 4


def test_the_children_and_indices_of_a_node_are_its_own(nodes: Interner) -> None:
    load = nodes.load(F32, 0, INDEX, (INDEX - 2,))
    chosen = nodes.choose((3 - INDEX,), load, nodes.constant(F32, 0.0))
    assert list(children(chosen)) == [load, nodes.constant(F32, 0.0)]
    assert list(indices(chosen)) == [3 - INDEX]
    assert list(indices(load)) == [INDEX, INDEX - 2]
    assert list(indices(nodes.index_value(DType.INT64, 4 * INDEX))) == [4 * INDEX]
    assert list(indices(nodes.constant(F32, 1.0))) == []
