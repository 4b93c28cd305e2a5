"""Sizes as a compiled function are what `evaluate` says of them, or nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tensorkiln.errors import CallBoundsError
from tensorkiln.expr import (
    INT64_MAX,
    INT64_MIN,
    Atom,
    Dim,
    Expr,
    ExprError,
    add,
    evaluate,
    floordiv,
    floormod,
    idiv,
    maximum,
    minimum,
    mod,
    mul,
    sub,
    symbol,
)
from tensorkiln.expr.size_function import SizeFunction, Value
from tensorkiln.launch import Variable, evaluate_launch, launch_from_dim

N, M = symbol("n"), symbol("m")
Ranges = dict[str, tuple[int, int]]
OPERATIONS: tuple[Callable[..., Dim], ...] = (add, sub, mul, floordiv, floormod, idiv, mod, maximum, minimum)
SMALL = st.integers(-9, 9)
HUGE = st.sampled_from([INT64_MIN, -(1 << 62), -(1 << 32), 1 << 31, 1 << 61, INT64_MAX])


def drawn_dims(constants: st.SearchStrategy[int]) -> st.SearchStrategy[Dim]:
    leaves = constants | st.sampled_from([N, M])

    def calls(dims: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
        return st.builds(_called, st.sampled_from(OPERATIONS), dims, dims)

    return st.recursive(leaves, calls, max_leaves=12)


def _called(operation: Callable[..., Dim], left: Dim, right: Dim) -> Dim:
    try:
        return operation(left, right)
    except ExprError:
        return add(left, 1)


@st.composite
def drawn_symbols(draw: st.DrawFn, values: st.SearchStrategy[int]) -> tuple[Ranges, dict[str, int]]:
    """Ranges of the symbols, and a value in each."""
    ranges: Ranges = {}
    chosen: dict[str, int] = {}
    for name in ("n", "m"):
        low, high = sorted((draw(values), draw(values)))
        ranges[name] = low, high
        chosen[name] = draw(st.integers(low, high) | st.sampled_from([low, high]))
    return ranges, chosen


def values_of(dims: Sequence[Dim], ranges: Ranges, symbols: Mapping[str, int]) -> tuple[int, ...] | None:
    function = SizeFunction(ranges)
    found = [function.of(dim) for dim in dims]
    made = function.compiled(found, found)(*symbols.values())
    if made is None:
        return None
    *values, packed = made
    for value, own in zip(found, values, strict=True):
        low, high = (value, value) if isinstance(value, int) else value.span
        assert low <= own <= high
    assert struct.unpack(f"{len(dims)}q", packed) == tuple(values)
    return tuple(values)


def leaves_64_bits(dim: Dim, symbols: Mapping[str, int]) -> bool:
    """Whether some order of the steps might."""
    if isinstance(dim, int):
        return abs(dim) > INT64_MAX
    atoms = [atom for monomial, _ in dim.terms for atom in monomial]
    if any(leaves_64_bits(argument, symbols) for atom in atoms for argument in atom.args):
        return True
    sizes = (prod((max(1, abs(_value(atom, symbols))) for atom in monomial), start=abs(c)) for monomial, c in dim.terms)
    return sum(sizes) > INT64_MAX


def _value(atom: Atom, symbols: Mapping[str, int]) -> int:
    return evaluate(Expr((((atom,), 1),)), symbols)


def as_launch(dim: Dim, ranges: Ranges, symbols: Mapping[str, int]) -> int:
    variables = {name: Variable(name=name, min=low, max=high) for name, (low, high) in ranges.items()}
    return evaluate_launch(launch_from_dim(dim, variables), symbols)


@settings(max_examples=300, deadline=None)
@given(st.lists(drawn_dims(SMALL), min_size=1, max_size=4), drawn_symbols(SMALL))
def test_small_values_are_those_of_the_interpreter(dims: list[Dim], drawn: tuple[Ranges, dict[str, int]]) -> None:
    ranges, symbols = drawn
    try:
        wanted = tuple(evaluate(dim, symbols) for dim in dims)
    except ExprError:
        wanted = None
    assert values_of(dims, ranges, symbols) == wanted


@settings(max_examples=300, deadline=None)
@given(drawn_dims(SMALL | HUGE), drawn_symbols(SMALL | HUGE))
def test_a_value_that_is_found_is_that_of_any_order_of_steps(dim: Dim, drawn: tuple[Ranges, dict[str, int]]) -> None:
    ranges, symbols = drawn
    found = values_of([dim], ranges, symbols)
    if found is not None:
        assert found[0] == evaluate(dim, symbols) == as_launch(dim, ranges, symbols)
        return
    try:
        evaluate(dim, symbols)
        assert leaves_64_bits(dim, symbols)
    except (ExprError, CallBoundsError):
        pass


@pytest.mark.parametrize("operation", [floordiv, floormod, idiv, mod])
@pytest.mark.parametrize("ranges", [(-20, 20), (0, 20), (1, 20), (-20, -1), (INT64_MIN, INT64_MAX)], ids=str)
def test_divisions_round_as_they_are_called_whatever_the_signs(
    operation: Callable[[Dim, Dim], Dim], ranges: tuple[int, int]
) -> None:
    dim = operation(N, M)
    function = SizeFunction({"n": ranges, "m": ranges})
    made = function.compiled([function.of(dim)], [])
    low, high = max(-8, ranges[0]), min(8, ranges[1])
    edges = [value for value in (INT64_MIN, INT64_MIN + 1, INT64_MAX) if ranges[0] <= value <= ranges[1]]
    for n in (*range(low, high + 1), *edges):
        for m in (*range(low, high + 1), *edges):
            # The least integer has no absolute value in 64 bits.
            has_value = m != 0 and INT64_MIN not in (n, m)
            wanted = (evaluate(dim, {"n": n, "m": m}), b"") if has_value else None
            assert made(n, m) == wanted, (n, m)


HOSTILE = ("v0", "t1_0", "pack", "sizes", "f1", "p0", "None", "lambda: 0", "__import__('os').abort()", "n\n", "'", "\\")


@pytest.mark.parametrize("name", HOSTILE)
def test_the_text_of_a_name_is_nothing_to_the_function(name: str) -> None:
    own = symbol(name)
    dims = [add(own, mul(3, N)), floordiv(own, N), maximum(own, N), mul(own, own)]
    assert values_of(dims, {name: (1, 99), "n": (1, 9)}, {name: 17, "n": 5}) == (32, 3, 17, 289)
    assert values_of(dims, {"n": (1, 9), name: (1, 99)}, {"n": 5, name: 17}) == (32, 3, 17, 289)


def test_a_symbol_that_is_called_as_an_expression_is_not_that() -> None:
    division = floordiv(N, M)
    named = symbol(str(division))
    ranges = {"n": (1, 9), "m": (1, 9), str(division): (1, 99)}
    for dims in ([division, named], [named, division]):
        found = values_of([dims[0]], ranges, {"n": 9, "m": 2, str(division): 50})
        assert found == (4 if dims[0] is division else 50,)


def test_a_symbol_without_a_range_has_no_value() -> None:
    assert values_of([add(N, M)], {"n": (0, 9)}, {"n": 3}) is None
    assert values_of([floordiv(N, M)], {"n": (0, 9)}, {"n": 3}) is None


@pytest.mark.parametrize("n", [-1, 0, 10, 1 << 70])
def test_a_symbol_out_of_its_range_has_no_sizes(n: int) -> None:
    assert values_of([N], {"n": (1, 9)}, {"n": n}) is None


def test_an_expression_may_be_as_long_and_deep_as_the_wire_allows() -> None:
    sums = reduce(add, (mul(count, symbol(f"s{count}")) for count in range(1, 1025)))
    ranges = {f"s{count}": (0, 9) for count in range(1, 1025)}
    assert values_of([sums], ranges, dict.fromkeys(ranges, 2)) == (1024 * 1025,)
    nested: Dim = N
    for count in range(80):
        nested = floordiv(add(mul(3, nested), count), 2)
    assert values_of([nested], {"n": (0, 9)}, {"n": 7}) == (evaluate(nested, {"n": 7}),)


VALUES = st.integers(-50, 50)


@settings(max_examples=100, deadline=None)
@given(drawn_symbols(VALUES), VALUES, st.integers(1, 20), st.integers(0, 9))
def test_operations_on_values_are_those_of_their_names(
    drawn: tuple[Ranges, dict[str, int]], constant: int, divisor: int, factor: int
) -> None:
    ranges, symbols = drawn
    n, m = symbols.values()
    function = SizeFunction(ranges)
    left, right = function.of(N), function.of(M)
    wanted: list[tuple[Value, int]] = [
        (function.sum(left, constant, right), n + constant + m),
        (function.sum(left, constant), n + constant),
        (function.sum(constant, constant), 2 * constant),
        (function.scaled(left, factor), n * factor),
        (function.quotient(left, divisor), n // divisor),
        (function.greatest(left, right, constant), max(n, m, constant)),
        (function.least(left, right, constant), min(n, m, constant)),
        (function.where(left, right), m if n else 0),
        (function.where(left, constant), constant if n else 0),
        (function.where(0, left), 0),
        (function.call(lambda given: [sum(map(abs, given))], [left, 3, right], 1, 200)[0], abs(n) + 3 + abs(m)),
        (function.call(lambda given: [sum(given)], [1, 2], 1, 200)[0], 3),
    ]
    for value, expected in wanted:
        assert function.most(value) >= expected
        rest, constant_part = function.split(value)
        wanted = [*wanted, (rest, expected - constant_part)]
    values = [value for value, _ in wanted]
    made = function.compiled(values, values)(n, m)
    assert made is not None
    assert list(made[:-1]) == [expected for _, expected in wanted]


@settings(max_examples=200, deadline=None)
@given(drawn_symbols(SMALL), SMALL, st.sampled_from(["most", "equal", "between"]))
def test_a_condition_that_does_not_hold_leaves_nothing(
    drawn: tuple[Ranges, dict[str, int]], constant: int, kind: str
) -> None:
    ranges, symbols = drawn
    n, m = symbols.values()
    function = SizeFunction(ranges)
    left, right = function.of(N), function.of(M)
    if kind == "most":
        function.require_at_most(left, right)
        holds = n <= m
    elif kind == "equal":
        function.require_equal(left, right)
        holds = n == m
    else:
        function.require_between(constant, left, 5)
        holds = constant <= n <= 5
    assert (function.compiled([left], [])(n, m) is not None) is holds


def test_the_bytes_are_those_of_64_bit_integers_or_there_are_none() -> None:
    function = SizeFunction({"n": (0, 1 << 62)})
    doubled = function.sum(function.of(N), function.of(N), function.of(N))
    made: Callable[..., Any] = function.compiled([], [doubled])
    assert made(5) == (struct.pack("q", 15),)
    assert made(1 << 62) is None


def test_parameters_come_behind_the_symbols() -> None:
    function = SizeFunction({"n": (0, 9), "m": (0, 9)}, ("first", "second"))
    values = [function.parameter("second"), function.parameter("first"), function.symbol("m")]
    assert function.compiled(values, [])(1, 2, 30, 40) == (40, 30, 2, b"")


@settings(max_examples=30, deadline=None)
@given(drawn_dims(SMALL), drawn_symbols(SMALL))
def test_an_expression_is_evaluated_once(dim: Dim, drawn: tuple[Ranges, dict[str, int]]) -> None:
    assume(isinstance(dim, Expr))
    function = SizeFunction(drawn[0])
    first = function.of(dim)
    assert function.of(add(dim, 0)) == first
    assert function.of(dim) is first
