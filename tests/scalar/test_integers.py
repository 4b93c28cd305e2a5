"""Integers and bool: every kind on all pairs of edges and on random pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from passes import scalar
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError
from tests.scalar.kernel import TARGETS, Kernel, binary, binop, kernel, kernels, unary
from tests.scalar.values import INTEGERS, Array, assert_same, edges, operands, pairs, patterns


def _as_python(function: Callable[[int, int, DType], int], a: Array, b: Array, dtype: DType) -> Array:
    """The function on Python's integers, wrapped into the dtype."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    mask = (1 << dtype.bits) - 1
    values = [function(int(x), int(y), dtype) & mask for x, y in zip(a, b, strict=True)]
    return np.array(values, unsigned).view(dtype.numpy)


def _quotient(a: int, b: int, dtype: DType) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int, dtype: DType) -> int:
    return a if b == 0 else a - _quotient(a, b, dtype) * b


def _power(a: int, b: int, dtype: DType) -> int:
    if b >= 0:
        return pow(a, b, 1 << dtype.bits)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def _shift_left(a: int, b: int, dtype: DType) -> int:
    return a << b if 0 <= b < dtype.bits else 0


def _shift_right(a: int, b: int, dtype: DType) -> int:
    return a >> b if 0 <= b < dtype.bits else -1 if a < 0 else 0


MEANING: dict[str, Callable[[int, int, DType], int]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "div": _quotient,
    "idiv": _quotient,
    "mod": _remainder,
    "pow": _power,
    "max": lambda a, b, _: max(a, b),
    "min": lambda a, b, _: min(a, b),
    "xor": lambda a, b, _: a ^ b,
    "or": lambda a, b, _: a | b,
    "and": lambda a, b, _: a & b,
    "shl": _shift_left,
    "shr": _shift_right,
}


def of_every(dtypes: Sequence[DType]) -> pytest.MarkDecorator:
    """Parameters of tests; what is made for a dtype is made once, so its tests are done by one process."""
    grouped = [pytest.param(dtype, marks=pytest.mark.xdist_group(f"integers {dtype}")) for dtype in dtypes]
    return pytest.mark.parametrize("dtype", grouped, ids=str)


@cache
def operations(dtype: DType, target: str) -> dict[str, Kernel]:
    """Every kind on a dtype."""
    loops = kernels({f"loop_{kind}": binop(kind, dtype) for kind in MEANING}, target)
    return {kind: loops[f"loop_{kind}"] for kind in MEANING}


@pytest.mark.parametrize("target", TARGETS)
@of_every(INTEGERS)
@pytest.mark.parametrize("kind", list(MEANING))
def test_a_kind_is_its_meaning_on_python_integers(kind: str, dtype: DType, target: str) -> None:
    a, b = operands(dtype, 2000)
    assert_same(operations(dtype, target)[kind](a, b), _as_python(MEANING[kind], a, b, dtype), a, b)


@pytest.mark.parametrize("target", TARGETS)
@of_every([DType.INT8, DType.UINT8])
@pytest.mark.parametrize("kind", ["idiv", "mod"])
def test_division_of_bytes_is_right_for_every_pair(kind: str, dtype: DType, target: str) -> None:
    every = np.arange(256).astype(np.uint8).view(dtype.numpy)
    a, b = pairs(every, every)
    assert_same(operations(dtype, target)[kind](a, b), _as_python(MEANING[kind], a, b, dtype), a, b)


@pytest.mark.parametrize("target", TARGETS)
@of_every([DType.INT16, DType.UINT16, DType.INT32, DType.UINT32])
@pytest.mark.parametrize("kind", ["idiv", "mod"])
def test_division_is_right_next_to_multiples(kind: str, dtype: DType, target: str) -> None:
    generator = np.random.default_rng(2)
    size = 100_000
    divisor = np.maximum(np.exp2(generator.uniform(0, dtype.bits - 1, size)).astype(np.int64), 1)
    quotient = generator.integers(0, int(dtype.max), size) // divisor
    dividend = np.clip(quotient * divisor + generator.integers(-1, 2, size), int(dtype.min), int(dtype.max))
    a, b = dividend.astype(dtype.numpy), divisor.astype(dtype.numpy)
    if dtype.is_signed:
        a, b = (
            a * generator.choice([-1, 1], size).astype(dtype.numpy),
            b * generator.choice([-1, 1], size).astype(dtype.numpy),
        )
    assert_same(operations(dtype, target)[kind](a, b), _as_python(MEANING[kind], a, b, dtype), a, b)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("divisor", [0, 1, 3, 7, 10, "minus one", "the greatest", "the least"])
def test_division_by_a_constant(dtype: DType, divisor: int | str) -> None:
    divisor = int(
        {"minus one": -1 if dtype.is_signed else 1, "the greatest": dtype.max, "the least": dtype.min}.get(
            str(divisor), divisor
        )
    )
    x = np.concatenate([edges(dtype), patterns(dtype, 2000)])
    b = np.full(x.shape, divisor, dtype.numpy)
    for kind in ("idiv", "mod"):
        compiled = kernel(
            lambda traits, values, kind=kind: scalar.binop(
                kind, dtype, values[0], scalar.constant(dtype, divisor), traits=traits
            ),
            (dtype,),
            dtype,
        )
        assert_same(compiled(x), _as_python(MEANING[kind], x, b, dtype), x)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kind", ["shl", "shr"])
def test_the_amount_of_a_shift_may_be_uint32(kind: str, dtype: DType) -> None:
    a, b = pairs(edges(dtype), edges(DType.UINT32))
    actual = binary(kind, dtype, amount=DType.UINT32)(a, b)
    assert_same(actual, _as_python(MEANING[kind], a, b, dtype), a, b)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("result", [DType.BOOL, DType.UINT8])
def test_comparisons_follow_the_sign_of_the_dtype(dtype: DType, result: DType) -> None:
    a, b = operands(dtype)
    assert_same(binary("cmplt", dtype, result=result)(a, b), (a < b).astype(result.numpy), a, b)
    assert_same(binary("cmpne", dtype, result=result)(a, b), (a != b).astype(result.numpy), a, b)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_neg_wraps(dtype: DType) -> None:
    x = edges(dtype)
    assert_same(unary("neg", dtype)(x), (0 - x).astype(dtype.numpy), x)


def test_neg_of_bool_is_not() -> None:
    assert unary("neg", DType.BOOL)(edges(DType.BOOL)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("kind", "truth"),
    [
        ("add", [0, 1, 1, 1]),
        ("mul", [0, 0, 0, 1]),
        ("max", [0, 1, 1, 1]),
        ("min", [0, 0, 0, 1]),
        ("cmplt", [0, 1, 0, 0]),
        ("cmpne", [0, 1, 1, 0]),
        ("xor", [0, 1, 1, 0]),
        ("or", [0, 1, 1, 1]),
        ("and", [0, 0, 0, 1]),
    ],
)
def test_bool_has_a_truth_table(kind: str, truth: list[int]) -> None:
    a, b = pairs(edges(DType.BOOL), edges(DType.BOOL))
    assert binary(kind, DType.BOOL)(a, b).tolist() == [bool(value) for value in truth]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_mulacc_of_integers_wraps(dtype: DType) -> None:
    a, b = operands(dtype)
    c = np.roll(a, 5)
    compiled = kernel(
        lambda traits, values: scalar.ternary("mulacc", dtype, values[0], values[1], values[2], traits=traits),
        (dtype,) * 3,
        dtype,
    )
    with np.errstate(over="ignore"):
        assert_same(compiled(a, b, c), a * b + c, a, b, c)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("xor", DType.FLOAT32), ("shl", DType.FLOAT64), ("idiv", DType.FLOAT32), ("fdiv", DType.INT32)]
    + [(kind, DType.BOOL) for kind in ("sub", "div", "idiv", "fdiv", "mod", "pow", "shl", "shr")],
)
def test_a_kind_that_the_dtype_does_not_have_is_refused(kind: str, dtype: DType) -> None:
    with pytest.raises(UnsupportedGraphError, match=kind):
        binary(kind, dtype)


@pytest.mark.parametrize("kind", ["log2", "exp2", "sin", "sqrt", "recip", "trunc"])
def test_a_function_of_floats_refuses_integers(kind: str) -> None:
    with pytest.raises(UnsupportedGraphError, match=kind):
        unary(kind, DType.INT32)
