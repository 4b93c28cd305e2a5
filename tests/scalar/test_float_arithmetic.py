"""Correctly rounded operations on floats: bit for bit what IEEE 754 says, in every dtype, on every target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from dialect.mlir import ir
from passes import scalar
from passes.codegen.object_code import emit
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType
from tensorkiln.target import LINUX_X86_64, Target
from tests.scalar.kernel import TARGETS, Kernel, Loop, assembler, binary, binop, kernel, kernels, llvm_ir, unary
from tests.scalar.values import FLOATS, WIDE_FLOATS, Array, assert_same, edges, operands, pairs, patterns

ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "fdiv": np.divide,
    "mod": np.fmod,
}


def _rounded(values: Array, dtype: DType) -> Array:
    """float64 values in `dtype`, rounded once."""
    if dtype is not DType.BFLOAT16:
        return values.astype(dtype.numpy)
    bits = values.astype(np.float64).view(np.uint64)
    sticky = np.where((bits & ((1 << 42) - 1)) != 0, (bits >> 42 << 42) | (1 << 42), bits)
    return sticky.view(np.float64).astype(np.float32).astype(dtype.numpy)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div", "fdiv"])
def test_arithmetic_is_correctly_rounded(kind: str, dtype: DType, target: str) -> None:
    a, b = operands(dtype, 50_000)
    with np.errstate(all="ignore"):
        wide = np.float64 if dtype.bits == 16 else dtype.numpy
        expected = _rounded(ARITHMETIC[kind](a.astype(wide), b.astype(wide)), dtype)
    assert_same(binary(kind, dtype, target)(a, b), expected, a, b)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_mod_is_the_exact_remainder_of_c(dtype: DType, target: str) -> None:
    a, b = operands(dtype, 20_000)
    with np.errstate(all="ignore"):
        expected = _rounded(np.fmod(a.astype(np.float64), b.astype(np.float64)), dtype)
    assert_same(binary("mod", dtype, target)(a, b), expected, a, b)


@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_mod_is_exact_over_the_widest_quotient(dtype: DType) -> None:
    generator = np.random.default_rng(5)
    info = np.finfo(dtype.numpy)
    a = (info.max * generator.uniform(0.25, 1, 2000)).astype(dtype.numpy)
    b = (info.smallest_subnormal * generator.integers(1, 1 << 20, 2000)).astype(dtype.numpy)
    assert_same(binary("mod", dtype)(a, b), np.fmod(a, b), a, b)


def _maximum(a: Array, b: Array) -> Array:
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_max_and_min_propagate_nan_and_order_zeros(dtype: DType, target: str) -> None:
    a, b = operands(dtype)
    with np.errstate(all="ignore"):
        left, right = a.astype(np.float64), b.astype(np.float64)
        greater, lesser = _rounded(_maximum(left, right), dtype), _rounded(-_maximum(-left, -right), dtype)
    assert_same(binary("max", dtype, target)(a, b), greater, a, b)
    assert_same(binary("min", dtype, target)(a, b), lesser, a, b)


KNOWN = (0.0, -0.0, 1.5, -6.0, np.inf, -np.inf, np.nan)
SIDES = {"left": 1, "right": -1}
"""Where the array stands."""


@cache
def extremes(dtype: DType, target: str) -> dict[str, Kernel]:
    """`max` and `min` of two arrays, and of an array beside the constant at each place of KNOWN, in either order."""

    def beside(kind: str, known: float, order: int) -> Loop:
        def body(traits: Traits, values: Sequence[ir.Value]) -> ir.Value:
            left, right = (values[0], scalar.constant(dtype, known))[::order]
            return scalar.binop(kind, dtype, left, right, traits=traits)

        return Loop(body, (dtype,), dtype)

    loops = {f"of_{kind}": binop(kind, dtype) for kind in ("max", "min")}
    for place, known in enumerate(KNOWN):
        for kind in ("max", "min"):
            loops |= {f"{kind}_{place}_{side}": beside(kind, known, order) for side, order in SIDES.items()}
    return kernels(loops, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "dtype", [pytest.param(dtype, marks=pytest.mark.xdist_group(f"extremes {dtype}")) for dtype in FLOATS], ids=str
)
@pytest.mark.parametrize("place", range(len(KNOWN)), ids=[str(known) for known in KNOWN])
def test_max_and_min_beside_a_constant_are_those_beside_a_variable(place: int, dtype: DType, target: str) -> None:
    x = np.concatenate([edges(dtype), patterns(dtype, 2000)])
    made = extremes(dtype, target)
    for kind in ("max", "min"):
        expected = made[f"of_{kind}"](x, np.full_like(x, KNOWN[place]))
        for side in SIDES:
            assert_same(made[f"{kind}_{place}_{side}"](x), expected, x)


def test_a_relu_is_a_comparison_and_a_mask() -> None:
    def relu(traits: Traits, values: Sequence[ir.Value]) -> ir.Value:
        return scalar.binop("max", DType.FLOAT32, values[0], scalar.constant(DType.FLOAT32, 0.0), traits=traits)

    text = assembler(relu, (DType.FLOAT32,), DType.FLOAT32, "cpu:x86-64-v4")
    assert "vcmpnleps" in text
    assert "vmaxps" not in text


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("result", [DType.BOOL, DType.UINT8])
def test_comparisons_are_false_for_nan_except_unequal(dtype: DType, result: DType, target: str) -> None:
    a, b = operands(dtype)
    with np.errstate(invalid="ignore"):
        less, differs = (a < b).astype(result.numpy), (a != b).astype(result.numpy)
    assert_same(binary("cmplt", dtype, target, result=result)(a, b), less, a, b)
    assert_same(binary("cmpne", dtype, target, result=result)(a, b), differs, a, b)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_neg_sqrt_and_recip_are_correctly_rounded(dtype: DType, target: str) -> None:
    x = np.concatenate([edges(dtype), patterns(dtype, 1 << 16)])
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64 if dtype.bits == 16 else dtype.numpy)
        assert_same(unary("sqrt", dtype, target)(x), _rounded(np.sqrt(wide), dtype), x)
        assert_same(unary("recip", dtype, target)(x), _rounded(1 / wide, dtype), x)
    sign = np.dtype(f"u{dtype.itemsize}").type(1 << (dtype.bits - 1))
    flipped = (x.view(sign.dtype) ^ sign).view(dtype.numpy)
    assert_same(unary("neg", dtype, target)(x), flipped, x)


def _truncated(dtype: DType) -> tuple[Array, Array]:
    """Edges, many patterns, and numbers around those that have no fraction any more; and each of them truncated."""
    generator = np.random.default_rng(3)
    near = generator.uniform(-1, 1, 20_000) * 2.0 ** generator.integers(0, 56, 20_000)
    with np.errstate(all="ignore"):
        x = np.concatenate([edges(dtype), patterns(dtype, 1 << 16), near.astype(dtype.numpy)])
        return x, np.trunc(x.astype(np.float64)).astype(dtype.numpy)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_trunc_rounds_toward_zero_and_keeps_the_sign_of_zero(dtype: DType, target: str) -> None:
    x, expected = _truncated(dtype)
    assert_same(unary("trunc", dtype, target)(x), expected, x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_trunc_needs_no_instruction_of_its_own(dtype: DType) -> None:
    compiled = kernel(lambda _, values: scalar.unary("trunc", dtype, values[0]), (dtype,), dtype)
    x, expected = _truncated(dtype)
    assert_same(compiled(x), expected, x)


def test_trunc_is_compiled_for_a_processor_that_cannot_round() -> None:
    bare = Target(kind="cpu", triple=LINUX_X86_64, cpu="x86-64", features=("sse", "sse2"))
    code = emit(
        llvm_ir(
            lambda traits, values: scalar.unary("trunc", DType.FLOAT32, values[0], traits=traits),
            (DType.FLOAT32,),
            DType.FLOAT32,
            bare,
        ),
        bare,
    )
    assert b"truncf" not in code


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_mulacc_rounds_the_product_before_the_sum(dtype: DType, target: str) -> None:
    a, b = operands(dtype, 20_000)
    c = np.roll(a, 17)
    compiled = kernel(
        lambda traits, values: scalar.ternary("mulacc", dtype, values[0], values[1], values[2], traits=traits),
        (dtype,) * 3,
        dtype,
        target,
    )
    with np.errstate(all="ignore"):
        wide = np.float64 if dtype.bits == 16 else dtype.numpy
        product = _rounded(a.astype(wide) * b.astype(wide), dtype)
        expected = _rounded(product.astype(wide) + c.astype(wide), dtype)
    assert_same(compiled(a, b, c), expected, a, b, c)


def test_mulacc_may_contract_when_the_user_allows_it() -> None:
    fused = scalar.Traits(has_fma=True, fast_math=True)
    compiled = kernel(
        lambda _, values: scalar.ternary("mulacc", DType.FLOAT32, values[0], values[1], values[2], traits=fused),
        (DType.FLOAT32,) * 3,
        DType.FLOAT32,
    )
    x = np.full(8, 1 + 2.0**-12, np.float32)
    square = np.float32(x[0] * x[0])
    exact = float(x[0]) ** 2 - float(square)
    assert exact != 0
    assert compiled(x, x, np.full(8, -square)).tolist() == [exact] * 8


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("condition", [DType.BOOL, DType.UINT8])
def test_where_takes_one_branch_bit_for_bit(dtype: DType, condition: DType, target: str) -> None:
    b, c = pairs(edges(dtype), edges(dtype))
    a = np.resize(np.array([0, 1, 2, 0, 255]), b.size).astype(condition.numpy)
    compiled = kernel(
        lambda traits, values: scalar.ternary(
            "where", dtype, values[0], values[1], values[2], condition_dtype=condition, traits=traits
        ),
        (condition, dtype, dtype),
        dtype,
        target,
    )
    assert_same(compiled(a, b, c), np.where(a != 0, b, c), a, b, c)
