"""Values: checked 64-bit arithmetic, and the exact texts of its errors."""

from __future__ import annotations

import pytest

from tensorkiln import expr
from tensorkiln.expr import INT64_MAX, INT64_MIN, ExprError, evaluate, symbol

N, M = symbol("n"), symbol("m")


def test_every_operation_has_a_value() -> None:
    env = {"n": -7, "m": 3, "unused": 1}
    assert evaluate(N * N + M, env) == 52
    assert evaluate(expr.floordiv(N, M), env) == -3
    assert evaluate(expr.floormod(N, M), env) == 2
    assert evaluate(expr.idiv(N, M), env) == -2
    assert evaluate(expr.mod(N, M), env) == -1
    assert evaluate(expr.maximum(N, M, 0), env) == 3
    assert evaluate(expr.minimum(N, M, 0), env) == -7
    assert evaluate(expr.ceildiv(N, 2), env) == -3


def test_a_symbol_without_a_value_is_named() -> None:
    with pytest.raises(ExprError, match=r"^missing runtime value for launch-size variable m$"):
        evaluate(N + M, {"n": 1})


def test_a_product_out_of_range_states_its_operands() -> None:
    with pytest.raises(ExprError, match=f"^invalid launch-size arithmetic: {1 << 40} Mul {1 << 40}$"):
        evaluate(N * M, {"n": 1 << 40, "m": 1 << 40})


def test_a_sum_out_of_range_states_its_operands() -> None:
    with pytest.raises(ExprError, match=f"^invalid launch-size arithmetic: {INT64_MAX} Add 1$"):
        evaluate(N + 1, {"n": INT64_MAX})


def test_a_constant_out_of_range_is_refused() -> None:
    assert evaluate(INT64_MIN, {}) == INT64_MIN
    with pytest.raises(ExprError, match=r"^invalid launch-size arithmetic: "):
        evaluate(INT64_MAX + 1, {})


@pytest.mark.parametrize("name", ["floordiv", "floormod", "idiv", "mod"])
def test_a_division_by_zero_states_its_operands(name: str) -> None:
    label = {"floordiv": "FloorDiv", "floormod": "FloorMod", "idiv": "Idiv", "mod": "Mod"}[name]
    dim = getattr(expr, name)(N, M)
    with pytest.raises(ExprError, match=f"^invalid launch-size arithmetic: 5 {label} 0$"):
        evaluate(dim, {"n": 5, "m": 0})


def test_the_one_quotient_that_overflows_is_refused() -> None:
    with pytest.raises(ExprError, match=f"^invalid launch-size arithmetic: {INT64_MIN} FloorDiv -1$"):
        evaluate(expr.floordiv(N, M), {"n": INT64_MIN, "m": -1})


def test_the_largest_and_the_smallest_value_are_in_range() -> None:
    assert evaluate(N + 0, {"n": INT64_MAX}) == INT64_MAX
    assert evaluate(N - 1, {"n": INT64_MIN + 1}) == INT64_MIN
