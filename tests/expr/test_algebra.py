"""The canonical form: what is equal, what folds, what is refused."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorkiln import expr
from tensorkiln.expr import Dim, ExprError, ExprLimitError, symbol
from tests.expr.dims import EVERY_SETTING, Sample, samples

N, M = symbol("n"), symbol("m")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (N * 2 + N, 3 * N),
        ((N + M) * (N - M), N * N - M * M),
        (N * M, M * N),
        (expr.add(N, 1, M, -1), M + N),
        (-(N - M), M - N),
        (expr.mul(N, 1, M), expr.mul(M, N)),
        (expr.maximum(N, 3, M), expr.maximum(expr.maximum(M, 3), N, N)),
        (expr.minimum(4, N, 9), expr.minimum(N, 4)),
        ((N * 4 + 6) // 4, N + 1),
        (expr.floordiv(N * M + M, M), N + 1),
        (expr.floormod(N * 6 + 7, 3), 1),
        (expr.floormod(N * 5 + M, 5), expr.floormod(M, 5)),
        (expr.idiv(N * 6, 3), 2 * N),
        (expr.mod(N * 6, 3), 0),
        (expr.ceildiv(N * 4, 4), N),
        (expr.product([2, N, 3]), 6 * N),
    ],
)
def test_dims_equal_as_polynomials_are_one_value(left: Dim, right: Dim) -> None:
    assert left == right
    assert hash(left) == hash(right)
    assert str(left) == str(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (N, M),
        (N * 2, N * 3),
        (expr.floordiv(N, 2), expr.idiv(N, 2)),
        (expr.floormod(N, 2), expr.mod(N, 2)),
        (expr.maximum(N, M), expr.minimum(N, M)),
        # Truncation does not distribute: (3*n + 1) / 3 is n only where n is not negative.
        (expr.idiv(N * 3 + 1, 3), N),
    ],
)
def test_dims_of_different_values_differ(left: Dim, right: Dim) -> None:
    assert left != right


@pytest.mark.parametrize(
    "dim",
    [N - N, N * 0, (N + 1) - N - 1, expr.floordiv(0, N), expr.floormod(N, 1), expr.add(), expr.mul(N, 0, M)],
)
def test_a_constant_dim_is_an_int(dim: Dim) -> None:
    assert dim == 0
    assert type(dim) is int


@given(st.integers(-50, 50), st.integers(-9, 9).filter(bool))
def test_divisions_of_constants_are_those_of_integers(left: int, right: int) -> None:
    assert (expr.floordiv(left, right), expr.floormod(left, right)) == divmod(left, right)
    quotient, rest = expr.idiv(left, right), expr.mod(left, right)
    assert expr.add(expr.mul(quotient, right), rest) == left
    assert quotient == int(left / right)


@given(samples())
def test_the_canonical_form_computes_what_was_written(sample: Sample) -> None:
    for env in EVERY_SETTING:
        try:
            wanted = sample.value(env)
        except ZeroDivisionError:
            continue
        assert expr.evaluate(sample.dim, env) == wanted


@given(samples(4), samples(4))
def test_quotient_and_remainder_make_up_the_dividend(dividend: Sample, divisor: Sample) -> None:
    if divisor.dim == 0:
        return
    quotient, rest = expr.floordiv(dividend.dim, divisor.dim), expr.floormod(dividend.dim, divisor.dim)
    for env in EVERY_SETTING:
        try:
            left, right = dividend.value(env), divisor.value(env)
            expected = divmod(left, right)
        except ZeroDivisionError:
            continue
        assert (expr.evaluate(quotient, env), expr.evaluate(rest, env)) == expected


@pytest.mark.parametrize("divide", [expr.floordiv, expr.floormod, expr.idiv, expr.mod])
def test_the_constant_zero_divides_nothing(divide: object) -> None:
    assert callable(divide)
    with pytest.raises(ExprError, match="constant 0"):
        divide(N, N - N)


@given(samples(), samples(3), samples(3))
def test_substitution_is_evaluation_in_steps(sample: Sample, first: Sample, second: Sample) -> None:
    try:
        replaced = expr.substitute(sample.dim, {"a": first.dim, "b": second.dim, "zzz": 7})
    except ExprError:
        return
    for env in EVERY_SETTING[::5]:
        try:
            inner = {"a": first.value(env), "b": second.value(env), "c": env["c"]}
            wanted = sample.value(inner)
        except ZeroDivisionError:
            continue
        assert expr.evaluate(replaced, env) == wanted


def test_substitution_of_what_does_not_occur_is_the_same_object() -> None:
    assert expr.substitute(N, {"m": 3}) is N


def test_a_substituted_divisor_of_zero_is_refused() -> None:
    with pytest.raises(ExprError, match="constant 0"):
        expr.substitute(expr.floordiv(N, M), {"m": 0})


def test_free_symbols_are_those_of_the_canonical_form() -> None:
    assert expr.free_symbols(expr.floordiv(N, M) + symbol("k") * 2) == {"n", "m", "k"}
    assert expr.free_symbols(N - N + 3) == frozenset()


def test_depth_counts_the_levels_of_the_canonical_form() -> None:
    assert [expr.depth(dim) for dim in (7, N, N + 1, N * 2, expr.floordiv(N, 2), expr.floordiv(N + 1, 2) + 1)] == [
        *(1, 1, 2, 2, 2, 4)
    ]


def test_a_product_of_too_many_terms_is_refused_before_it_is_made() -> None:
    wide = expr.add(*(symbol(f"x{number}") for number in range(40)))
    with pytest.raises(ExprLimitError) as raised:
        expr.mul(wide, wide)
    assert (raised.value.limit, raised.value.maximum, raised.value.actual) == ("expression_terms", 256, 1600)


def test_a_sum_of_too_many_terms_is_refused() -> None:
    symbols = [symbol(f"x{number}") for number in range(1025)]
    assert expr.depth(expr.add(*symbols[:1024])) == 2
    with pytest.raises(ExprLimitError, match="an expression has 1025 terms; the limit expression_terms is 256"):
        expr.add(*symbols)


def test_a_huge_coefficient_is_refused() -> None:
    large = expr.mul(N, 1 << 128)
    assert expr.free_symbols(large) == {"n"}
    with pytest.raises(ExprError, match=r"coefficient over 2\^128"):
        expr.mul(large, 2)


def test_terms_print_in_one_order_whatever_the_order_of_writing() -> None:
    parts: list[Dim] = [N * M, expr.floordiv(N, 3), 7, M * -2]
    texts = {str(expr.add(*order)) for order in itertools.permutations(parts)}
    assert texts == {"m*n + floordiv(n, 3) + -2*m + 7"}


@pytest.mark.parametrize("made", [copy.deepcopy, lambda dim: pickle.loads(pickle.dumps(dim))], ids=["copy", "pickle"])
def test_a_copy_of_a_dim_is_the_same_value(made: Callable[[Dim], Dim]) -> None:
    dim = expr.maximum((N * 3 + 1) // 4, M % 5) * N
    again = made(dim)
    assert (again, hash(again), str(again), expr.free_symbols(again)) == (dim, hash(dim), str(dim), {"m", "n"})
    assert expr.substitute(again, {"n": 9, "m": 1}) == 63
