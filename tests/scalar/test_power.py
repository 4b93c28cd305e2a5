"""Powers of floats: NumPy's special cases exactly, everything else within two units in the last place."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from passes import scalar
from tensorkiln.dtypes import DType
from tests.scalar.kernel import EVERY_TARGET, binary, kernel
from tests.scalar.values import FLOATS, WIDE_FLOATS, Array, assert_same, edges, operands, pairs, patterns, ulps, worst

LIMIT = {DType.FLOAT32: 0.51, DType.FLOAT64: 1.2}
SPECIAL = [0.0, 1.0, 2.0, 3.0, 0.5, 1.5, 5.0, 1e30, np.inf]


def _truth(x: Array, y: Array) -> NDArray[np.longdouble]:
    with np.errstate(all="ignore"):
        wide = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        # Some C libraries answer pow(-inf, -2**63) with inf in long double.
        narrow = np.power(x.astype(np.float64), y.astype(np.float64))
        return np.where(np.isinf(x), narrow, wide)


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_the_error_is_small_over_all_results(dtype: DType, target: str) -> None:
    generator = np.random.default_rng(11)
    # Bases of every size with exponents that lead anywhere between underflow and overflow, and bases near 1.
    widest = np.log2(float(np.finfo(dtype.numpy).max))
    exponent = widest * 1.1
    base = np.exp2(generator.uniform(-widest, widest, 100_000))
    power = generator.uniform(-exponent, exponent, base.size) / np.log2(base)
    near_one = 1 + generator.normal(size=50_000) * 1e-3
    large = generator.uniform(-1, 1, near_one.size) * exponent / np.log2(near_one)
    with np.errstate(over="ignore"):
        x = np.concatenate([base, near_one]).astype(dtype.numpy)
        y = np.concatenate([power, large]).astype(dtype.numpy)
    distance, at = worst(binary("pow", dtype, target)(x, y), _truth(x, y), x, y)
    assert distance <= LIMIT[dtype], f"{distance:.3f} ulp at {at}"


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_edges_and_random_patterns(dtype: DType, target: str) -> None:
    x, y = operands(dtype, 50_000)
    distance, at = worst(binary("pow", dtype, target)(x, y), _truth(x, y), x, y)
    assert distance <= LIMIT[dtype], f"{distance:.3f} ulp at {at}"


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_cases_and_small_integers_are_numpys(dtype: DType, target: str) -> None:
    with np.errstate(over="ignore"):
        values = np.array([*SPECIAL, *(-value for value in SPECIAL), np.nan]).astype(dtype.numpy)
    x, y = pairs(values, values)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
        exact = np.isin(x.astype(np.float64), [0, 1, -1, np.inf, -np.inf]) | ~np.isfinite(expected) | (expected == 0)
        expected = expected.astype(dtype.numpy)
    assert_same(binary("pow", dtype, target)(x, y)[exact], expected[exact], x[exact], y[exact])


@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_a_power_that_is_representable_is_exact(dtype: DType) -> None:
    x, y = pairs(np.arange(-40, 41).astype(dtype.numpy), np.arange(0, 5).astype(dtype.numpy))
    assert_same(
        binary("pow", dtype)(x, y), np.power(x.astype(np.float64), y.astype(np.float64)).astype(dtype.numpy), x, y
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [1.0, 2.0, -1.0, 0.5, 3.0, 0.25])
def test_a_constant_exponent_gives_what_a_variable_one_does(exponent: float, dtype: DType) -> None:
    x = np.concatenate([edges(dtype), patterns(dtype, 20_000)])
    compiled = kernel(
        lambda traits, values: scalar.binop("pow", dtype, values[0], scalar.constant(dtype, exponent), traits=traits),
        (dtype,),
        dtype,
    )
    y = np.full(x.shape, exponent).astype(dtype.numpy)
    actual, variable = compiled(x), binary("pow", dtype)(x, y)
    with np.errstate(invalid="ignore"):
        assert_same(np.isnan(actual), np.isnan(variable), x)
    if dtype.bits > 16:
        assert float(np.max(ulps(actual, _truth(x, y)))) <= LIMIT[dtype]
    else:
        assert_same(actual, variable, x)
