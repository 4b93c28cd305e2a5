"""Dimensions that would take for ever to reason about are refused at once."""

from __future__ import annotations

import pytest

from tensorkiln.errors import InvalidGraphError
from tensorkiln.expr import ExprError, mul, symbol
from tensorkiln.expr.algebra import MAX_FACTORS
from tensorkiln.graph import Graph
from tests.contract.wire import placeholder, wire


def test_a_product_has_so_many_factors_and_no_more() -> None:
    n = symbol("n")
    assert str(mul(*[n] * MAX_FACTORS)).count("n") == MAX_FACTORS
    with pytest.raises(ExprError, match="more than 64 factors"):
        mul(*[n] * (MAX_FACTORS + 1))


@pytest.mark.parametrize("count", [MAX_FACTORS + 1, 20_000])
def test_a_shape_with_a_longer_product_is_refused(count: int) -> None:
    long = {"op": "mul", "args": ["n"] * count}
    with pytest.raises(InvalidGraphError, match="factors") as caught:
        Graph.model_validate(wire([placeholder(0, "float32", [long])], [0], [0], {"n": (1, 2)}))
    assert caught.value.pointers == ("/nodes/0/shape/0",)
