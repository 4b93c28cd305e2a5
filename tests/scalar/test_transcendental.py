"""exp2, log2 and sin: at most 1.15 units in the last place anywhere, exact where exactness is promised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dialect.mlir import ir
from passes.scalar.exp2 import exp2, normal_exp2
from passes.scalar.form import form_of
from passes.scalar.number import Number
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType
from tests.scalar.kernel import EVERY_TARGET, kernel, unary
from tests.scalar.values import FLOATS, WIDE_FLOATS, Array, assert_same, edges, patterns, ulps, worst

COUNT = 100_000
LIMIT = 1.15
TRUTH: dict[str, Callable[[NDArray[np.longdouble]], NDArray[np.longdouble]]] = {
    "exp2": np.exp2,
    "log2": np.log2,
    "sin": np.sin,
}


def _truth(kind: str, x: Array) -> NDArray[np.longdouble]:
    with np.errstate(all="ignore"):
        return TRUTH[kind](x.astype(np.longdouble))


def _arguments(kind: str, dtype: DType) -> Array:
    """Random patterns, edges, and where the function is delicate."""
    generator = np.random.default_rng(3)
    is_single = dtype is DType.FLOAT32
    delicate: list[NDArray[Any]]
    if kind == "exp2":
        delicate = [generator.uniform(-1, 1, COUNT)]
        delicate.append(generator.uniform(-152, 129, COUNT) if is_single else generator.uniform(-1080, 1025, COUNT))
        delicate.append(np.arange(-1080, 1026) + 0.5)
    elif kind == "log2":
        delicate = [generator.uniform(0.4, 2.5, COUNT), 1 + generator.normal(size=COUNT) * 1e-4]
        delicate.append(np.ldexp(np.sqrt(0.5), np.arange(-1070, 1020)))
    else:
        multiples = np.arange(1, COUNT) * (np.pi / 2)
        delicate = [multiples, multiples * 2.0**20, np.ldexp(1.0, np.arange(-1074, 1024))]
        delicate += [generator.uniform(-bound, bound, COUNT) for bound in (4, 2.0**12, 2.0**20, 1e6)]
    with np.errstate(over="ignore"):
        return np.concatenate([patterns(dtype, COUNT), edges(dtype), *(part.astype(dtype.numpy) for part in delicate)])


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("dtype", WIDE_FLOATS)
@pytest.mark.parametrize("kind", list(TRUTH))
def test_the_error_is_at_most_a_little_over_one_unit(kind: str, dtype: DType, target: str) -> None:
    x = _arguments(kind, dtype)
    distance, at = worst(unary(kind, dtype, target)(x), _truth(kind, x), x)
    assert distance <= LIMIT, f"{distance:.3f} ulp at {at}"


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
@pytest.mark.parametrize("kind", list(TRUTH))
def test_every_16_bit_argument_gives_a_neighbour_of_the_truth(kind: str, dtype: DType, target: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    actual, truth = unary(kind, dtype, target)(x), _truth(kind, x)
    with np.errstate(all="ignore"):
        nearest = truth.astype(np.float32).astype(dtype.numpy)
    # The float32 result is a correct one or its neighbour, so rounding may differ where the truth is near a tie.
    steps = np.abs(_ordered(actual) - _ordered(nearest))
    is_nan = np.isnan(actual) & np.isnan(nearest)
    assert np.max(np.where(is_nan, 0, steps)) <= 1
    assert np.mean((steps == 0) | is_nan) > 0.999


def _ordered(x: Array) -> NDArray[np.int64]:
    """Patterns as integers in the order of their values; both zeros are 0."""
    bits = x.view(np.uint16).astype(np.int64)
    return np.where(bits >> 15, -(bits & 0x7FFF), bits)


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("dtype", FLOATS)
def test_exp2_of_an_integer_is_an_exact_power(dtype: DType, target: str) -> None:
    x = np.arange(-1100, 1100).astype(dtype.numpy)
    with np.errstate(over="ignore"):
        expected = np.exp2(x.astype(np.float64)).astype(dtype.numpy)
    assert_same(unary("exp2", dtype, target)(x), expected, x)


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_exp2_of_at_most_zero_has_the_same_bits(dtype: DType, target: str) -> None:
    def below(traits: Traits, values: Sequence[ir.Value]) -> ir.Value:
        return exp2(traits, Number(values[0], form_of(dtype)), is_at_most_zero=True).value

    x = -np.abs(_arguments("exp2", dtype))
    x = np.concatenate([x, np.array([0.0, -np.inf, np.nan, -126.5, -149, -149.5, -150, -1074.5, -1075], dtype.numpy)])
    assert_same(kernel(below, [dtype], dtype, target)(x), unary("exp2", dtype, target)(x), x)


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_normal_exp2_has_zeros_for_denormals(dtype: DType, target: str) -> None:
    def normal(traits: Traits, values: Sequence[ir.Value]) -> ir.Value:
        return normal_exp2(traits, Number(values[0], form_of(dtype))).value

    limits = np.finfo(dtype.numpy)
    x = -np.abs(_arguments("exp2", dtype))
    edges = [0.0, -np.inf, np.nan, limits.minexp, limits.minexp - 0.25, limits.minexp + 0.25, limits.minexp - 10]
    x = np.concatenate([x, np.array(edges, dtype.numpy)])
    powers = unary("exp2", dtype, target)(x)
    assert_same(kernel(normal, [dtype], dtype, target)(x), np.where(powers < limits.tiny, 0, powers), x)


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("dtype", FLOATS)
def test_log2_of_a_power_of_two_is_an_exact_integer(dtype: DType, target: str) -> None:
    with np.errstate(over="ignore"):
        x = np.ldexp(1.0, np.arange(-1074, 1024)).astype(dtype.numpy)
    x = x[(x > 0) & np.isfinite(x)]
    assert_same(unary("log2", dtype, target)(x), np.log2(x.astype(np.float64)).astype(dtype.numpy), x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("kind", "x", "expected"),
    [
        ("exp2", [np.inf, -np.inf, np.nan, 0.0, -0.0, 2000.0, -2000.0], [np.inf, 0, np.nan, 1, 1, np.inf, 0]),
        (
            "log2",
            [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0],
            [-np.inf, -np.inf, np.inf, np.nan, np.nan, np.nan, 0],
        ),
        ("sin", [0.0, -0.0, np.inf, -np.inf, np.nan], [0.0, -0.0, np.nan, np.nan, np.nan]),
    ],
)
def test_special_values(kind: str, dtype: DType, x: list[float], expected: list[float]) -> None:
    argument, result = np.array(x).astype(dtype.numpy), np.array(expected).astype(dtype.numpy)
    assert_same(unary(kind, dtype)(argument), result, argument)


@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_sin_of_a_tiny_argument_is_the_argument(dtype: DType) -> None:
    x = np.concatenate([np.ldexp(1.0, np.arange(-1074, -30)), -np.ldexp(1.0, np.arange(-1074, -30))])
    x = x.astype(dtype.numpy)
    assert_same(unary("sin", dtype)(x), x, x)


def test_sin_is_right_at_the_float64_nearest_to_a_multiple_of_pi() -> None:
    # 6381956970095103 * 2**797 is the float64 closest to a multiple of pi/2 (J.-M. Muller, "Elementary Functions").
    x = np.array([np.ldexp(6381956970095103.0, 797), 1e22, np.finfo(np.float64).max, 1.7e300])
    expected = np.array([1.0, -0.8522008497671888, 0.004961954789184062, np.sin(np.float64(1.7e300))])
    assert float(np.max(ulps(unary("sin", DType.FLOAT64)(x), expected.astype(np.longdouble)))) <= 1
