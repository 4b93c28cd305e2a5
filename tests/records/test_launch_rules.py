"""L1-L9: the evaluation of launch sizes, with the texts of their errors."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorkiln.dtypes import DType
from tensorkiln.errors import CallBoundsError
from tensorkiln.expr import Dim, evaluate, floordiv, floormod, idiv, maximum, minimum, mod, symbol
from tensorkiln.launch import (
    After,
    Binary,
    BinaryOp,
    Bind,
    BitCast,
    Cast,
    Const,
    DefineVar,
    LaunchNode,
    Ternary,
    TernaryOp,
    Unary,
    UnaryOp,
    Variable,
    evaluate_launch,
    launch_from_dim,
    resolve_launch_dims,
)
from tensorkiln.program_ast import Load, Param
from tensorkiln.spec import ProgramSpec

MIN, MAX = -(1 << 63), (1 << 63) - 1
N = DefineVar("n", 1, 100)
ONES = (Const(1), Const(1), Const(1))


def value_of(expr: LaunchNode, values: Mapping[str, int] | None = None) -> int:
    return evaluate_launch(expr, values or {})


def refused(message: str, expr: LaunchNode, values: Mapping[str, int] | None = None) -> None:
    """The whole message is exactly `message`."""
    with pytest.raises(CallBoundsError, match=f"^{re.escape(message)}$"):
        value_of(expr, values)


def binary(op: BinaryOp, left: int, right: int) -> LaunchNode:
    return Binary(op, Const(left), Const(right))


@pytest.mark.parametrize(
    ("constant", "value"), [(7, 7), (0, 0), (-3, -3), (MAX, MAX), (MIN, MIN), (True, 1), (False, 0)]
)
def test_l1_integers_and_booleans_are_their_value(constant: int, value: int) -> None:
    assert value_of(Const(constant)) == value


def test_l1_an_unsigned_constant_above_the_signed_range_is_refused() -> None:
    refused(f"launch-size constant {MAX + 1} does not fit i64", Const(MAX + 1))


@pytest.mark.parametrize(("constant", "text"), [(1.5, "1.5"), (2.0, "2"), (float("inf"), "inf")])
def test_l1_a_float_constant_is_refused(constant: float, text: str) -> None:
    refused(f"launch-size expression must be integer, got float constant {text}", Const(constant))


def test_l2_a_variable_without_a_value_is_refused() -> None:
    refused("missing runtime value for launch-size variable n", N, {"m": 3})


@pytest.mark.parametrize("value", [1, 50, 100])
def test_l2_bounds_are_inclusive(value: int) -> None:
    assert value_of(N, {"n": value}) == value


@pytest.mark.parametrize("value", [0, 101, -1])
def test_l2_a_value_out_of_bounds_is_refused(value: int) -> None:
    refused(f"symbol n={value} is outside bounds [1, 100]", N, {"n": value})


def test_l2_names_that_do_not_occur_are_ignored() -> None:
    assert value_of(N, {"n": 5, "unused": 1 << 70}) == 5


def test_l3_a_bind_is_its_value_and_needs_no_value_at_run_time() -> None:
    assert value_of(Bind(N, Const(42))) == 42
    assert value_of(Bind(N, Const(42)), {"n": 7}) == 42


def test_l3_a_bind_checks_the_bounds_of_its_variable() -> None:
    refused("symbol n=101 is outside bounds [1, 100]", Bind(N, Const(101)))


def test_l3_a_bind_of_something_else_checks_nothing() -> None:
    assert value_of(Bind(Const(3), Const(500))) == 500


@pytest.mark.parametrize(
    ("op", "left", "right", "value"),
    [
        (BinaryOp.ADD, 2, 3, 5),
        (BinaryOp.SUB, 2, 3, -1),
        (BinaryOp.MUL, -4, 3, -12),
        (BinaryOp.IDIV, 7, 2, 3),
        (BinaryOp.IDIV, -7, 2, -3),
        (BinaryOp.IDIV, 7, -2, -3),
        (BinaryOp.MOD, 7, 3, 1),
        (BinaryOp.MOD, -7, 3, -1),
        (BinaryOp.MOD, 7, -3, 1),
        (BinaryOp.MAX, -2, 5, 5),
    ],
)
def test_l4_arithmetic_truncates(op: BinaryOp, left: int, right: int, value: int) -> None:
    assert value_of(binary(op, left, right)) == value


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [
        (BinaryOp.ADD, MAX, 1),
        (BinaryOp.SUB, MIN, 1),
        (BinaryOp.MUL, MAX, 2),
        (BinaryOp.IDIV, 1, 0),
        (BinaryOp.IDIV, MIN, -1),
        (BinaryOp.MOD, 1, 0),
        (BinaryOp.MOD, MIN, -1),
        (BinaryOp.FLOOR_DIV, 1, 0),
        (BinaryOp.FLOOR_MOD, MIN, -1),
        (BinaryOp.CDIV, MIN, -1),
        (BinaryOp.CMOD, 5, 0),
        (BinaryOp.POW, 2, 63),
        (BinaryOp.POW, 2, -1),
        (BinaryOp.POW, 1, 1 << 32),
        (BinaryOp.SHL, 1, 64),
        (BinaryOp.SHR, 1, -1),
    ],
)
def test_l4_overflow_and_division_by_zero_are_refused(op: BinaryOp, left: int, right: int) -> None:
    refused(f"invalid launch-size arithmetic: {left} {op.value} {right}", binary(op, left, right))


@pytest.mark.parametrize(
    ("op", "left", "right", "value"),
    [
        (BinaryOp.FLOOR_DIV, -7, 2, -4),
        (BinaryOp.FLOOR_MOD, -7, 2, 1),
        (BinaryOp.CDIV, -7, 2, -3),
        (BinaryOp.CMOD, -7, 2, -1),
        (BinaryOp.POW, 3, 4, 81),
        (BinaryOp.POW, 0, 0, 1),
        (BinaryOp.POW, 0, 7, 0),
        (BinaryOp.POW, -1, (1 << 32) - 1, -1),
        (BinaryOp.POW, -1, 1 << 31, 1),
        (BinaryOp.POW, -2, 63, MIN),
        (BinaryOp.SHL, 3, 4, 48),
        (BinaryOp.SHL, 1, 63, MIN),
        (BinaryOp.SHR, -8, 1, -4),
        (BinaryOp.AND, 12, 10, 8),
        (BinaryOp.OR, 12, 10, 14),
        (BinaryOp.XOR, 12, 10, 6),
        (BinaryOp.LT, 1, 2, 1),
        (BinaryOp.LE, 2, 2, 1),
        (BinaryOp.EQ, 1, 2, 0),
        (BinaryOp.NE, 1, 2, 1),
        (BinaryOp.GT, 1, 2, 0),
        (BinaryOp.GE, 2, 2, 1),
    ],
)
def test_l4_the_later_operations_are_accepted(op: BinaryOp, left: int, right: int, value: int) -> None:
    assert value_of(binary(op, left, right)) == value


@pytest.mark.parametrize("op", [BinaryOp.FDIV, BinaryOp.THREEFRY])
def test_l4_an_operation_that_is_not_of_integers_is_refused_with_the_reason(op: BinaryOp) -> None:
    with pytest.raises(
        CallBoundsError, match=rf"^unsupported binary op in launch-size expression: {op.value} \(\w.+\)$"
    ):
        value_of(binary(op, 1, 2))


def test_l5_negation_and_absolute_value_check_for_overflow() -> None:
    assert value_of(Unary(UnaryOp.NEG, Const(5))) == -5
    assert value_of(Unary(UnaryOp.ABS, Const(-5))) == 5
    refused("invalid launch-size negation overflow", Unary(UnaryOp.NEG, Const(MIN)))
    refused("invalid launch-size abs overflow", Unary(UnaryOp.ABS, Const(MIN)))


@pytest.mark.parametrize(
    ("op", "source", "value"),
    [
        (UnaryOp.NOT, 5, -6),
        (UnaryOp.SIGN, -9, -1),
        (UnaryOp.SIGN, 0, 0),
        (UnaryOp.SQUARE, -9, 81),
        (UnaryOp.TRUNC, -9, -9),
        (UnaryOp.FLOOR, 9, 9),
        (UnaryOp.CEIL, 9, 9),
        (UnaryOp.ROUND, 9, 9),
    ],
)
def test_l5_the_later_operations_are_accepted(op: UnaryOp, source: int, value: int) -> None:
    assert value_of(Unary(op, Const(source))) == value


@pytest.mark.parametrize(
    "op", [UnaryOp.SQRT, UnaryOp.RSQRT, UnaryOp.EXP2, UnaryOp.LOG2, UnaryOp.SIN, UnaryOp.RECIPROCAL]
)
def test_l5_an_operation_that_is_not_of_integers_is_refused(op: UnaryOp) -> None:
    with pytest.raises(CallBoundsError, match=f"^unsupported launch-size expression op: {op.value}"):
        value_of(Unary(op, Const(1)))


def test_l6_casts_are_transparent_and_truncate_nothing() -> None:
    assert value_of(Cast(Const(300), DType.UINT8)) == 300
    assert value_of(BitCast(Const(-1), DType.UINT32)) == -1
    assert value_of(After(Const(1 << 40), (Const(1.5),))) == 1 << 40


def test_l7_anything_else_is_refused_by_name() -> None:
    refused("unsupported launch-size expression op: Load", Load(Param(0)))
    refused("unsupported launch-size expression op: Param", Binary(BinaryOp.ADD, Const(1), Param(0)))


@pytest.mark.parametrize("value", [0, -5])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_l8_a_dimension_is_positive(value: int, index: int) -> None:
    size = list(ONES)
    size[index] = Const(value)
    message = f"^launch dimension {index} evaluated to non-positive value {value}$"
    with pytest.raises(CallBoundsError, match=message):
        resolve_launch_dims(size, None, {})
    with pytest.raises(CallBoundsError, match=message):
        resolve_launch_dims(ONES, size, {})


def test_l8_a_dimension_fits_the_machines_counter() -> None:
    size = (Const(1), Const(1 << 32), Const(1))
    assert resolve_launch_dims(size, None, {}).global_size == (1, 1 << 32, 1)
    with pytest.raises(CallBoundsError, match=r"^launch dimension 1 value 4294967296 does not fit usize$"):
        resolve_launch_dims(size, None, {}, usize_max=(1 << 32) - 1)


def test_l8_global_is_judged_before_local_and_x_before_y() -> None:
    bad = (Const(1), Const(0), Const(1.5))
    with pytest.raises(CallBoundsError, match=r"launch dimension 1"):
        resolve_launch_dims(bad, (Const(2.5), Const(1), Const(1)), {})
    with pytest.raises(CallBoundsError, match=r"float constant 2.5"):
        resolve_launch_dims(ONES, (Const(2.5), Const(1), Const(1)), {})


def test_l9_without_a_local_size_there_is_none_in_the_result() -> None:
    assert resolve_launch_dims(ONES, None, {}).local_size is None
    assert resolve_launch_dims(ONES, ONES, {}).local_size == (1, 1, 1)


def test_l9_the_extent_of_a_strided_loop_is_127() -> None:
    ts = DefineVar("ts", 1, 64)
    extent = Ternary(TernaryOp.MULACC, ts, Const(16), Const(-1))
    assert resolve_launch_dims((extent, Const(1), Const(1)), None, {"ts": 8}).global_size == (127, 1, 1)


def test_a_where_takes_one_of_two_and_mulacc_checks_both_steps() -> None:
    assert value_of(Ternary(TernaryOp.WHERE, Const(1), Const(10), Const(20))) == 10
    assert value_of(Ternary(TernaryOp.WHERE, Const(0), Const(10), Const(20))) == 20
    refused(f"invalid launch-size arithmetic: {MAX} Mul 2", Ternary(TernaryOp.MULACC, Const(MAX), Const(2), Const(0)))
    refused(f"invalid launch-size arithmetic: {MAX} Add 1", Ternary(TernaryOp.MULACC, Const(MAX), Const(1), Const(1)))


def test_shared_subexpressions_are_evaluated_once() -> None:
    expr: LaunchNode = Const(0)
    for _ in range(60):
        expr = Binary(BinaryOp.ADD, expr, expr)
    # 2 ** 60 additions if each occurrence were evaluated: the test would not end.
    assert value_of(expr) == 0


n, m = symbol("n"), symbol("m")
DIMS: list[Dim] = [
    3 * n + m - 7,
    n * n * m,
    -n,
    n - m,
    floordiv(n, 16),
    floormod(n, m),
    idiv(n - 50, 7),
    mod(n - 50, m),
    maximum(n, m, 20),
    minimum(n, m, 20),
    floordiv(minimum(n, 64) + m - 1, m) * maximum(m, 2),
]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(DIMS), st.integers(1, 100), st.integers(1, 100))
def test_a_dim_has_the_same_value_by_the_launch_rules(dim: Dim, n_value: int, m_value: int) -> None:
    variables = {name: Variable(name=name, min=1, max=100) for name in ("n", "m")}
    values = {"n": n_value, "m": m_value}
    assert value_of(launch_from_dim(dim, variables), values) == evaluate(dim, values)


def test_a_spec_evaluates_its_sizes_within_the_bounds_of_its_variables() -> None:
    spec = ProgramSpec.new("k", None, "CPU").with_var(Variable(name="n", min=1, max=64))
    spec = spec.with_launch_dims((floordiv(n + 15, 16), 1, 1), None)
    assert spec.launch_dims({"n": 64, "other": 0}).global_size == (4, 1, 1)
    with pytest.raises(CallBoundsError, match=r"^symbol n=65 is outside bounds \[1, 64\]$"):
        spec.launch_dims({"n": 65})
    with pytest.raises(CallBoundsError, match=r"^missing runtime value for launch-size variable n$"):
        spec.launch_dims({})
