"""Transcendental functions and activations: accuracy against 64-bit NumPy, and the values at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorkiln import build
from tensorkiln.build import Tensor

if TYPE_CHECKING:
    from tests.build.conftest import Compute

EDGES = np.array([0.0, -0.0, 1e-30, -1e-30, 1e-6, -1e-6, 0.24, 0.26, -0.25, 0.99, 1.01, 4.2, -4.2, 6.1, -30.0, 30.0])
LINE = np.concatenate([np.linspace(-12, 12, 481), EDGES])
POSITIVE = np.concatenate([np.geomspace(1e-30, 1e30, 301), [1.0 - 1e-6, 1.0, 1.0 + 1e-6]])


def softplus(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.exp(-softplus(-x))


def phi(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x.tolist()])


def gelu_tanh(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ERF = np.vectorize(math.erf, otypes=[np.float64])
CASES: list[tuple[str, Callable[[Tensor], Tensor], Callable[[Any], Any], np.ndarray[Any, Any], float, float]] = [
    # name, ours, the truth, points, relative and absolute error in units of the dtype's epsilon
    ("exp", build.exp, np.exp, LINE, 24, 0),
    ("exp2", build.exp2, np.exp2, LINE, 2, 0),
    ("expm1", build.expm1, np.expm1, LINE, 24, 0),
    ("log", build.log, np.log, POSITIVE, 3, 0),
    ("log2", build.log2, np.log2, POSITIVE, 2, 0),
    ("log10", build.log10, np.log10, POSITIVE, 3, 0),
    ("log1p", build.log1p, np.log1p, POSITIVE, 4, 0),
    ("sqrt", build.sqrt, np.sqrt, POSITIVE, 1, 0),
    ("rsqrt", build.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE, 2, 0),
    ("reciprocal", build.reciprocal, lambda x: 1 / x, POSITIVE, 1, 0),
    ("sin", build.sin, np.sin, LINE, 2, 0),
    ("cos", build.cos, np.cos, LINE, 2, 3),
    ("sigmoid", build.sigmoid, sigmoid, LINE, 32, 0),
    ("tanh", build.tanh, np.tanh, LINE, 12, 0),
    ("silu", build.silu, lambda x: x * sigmoid(x), LINE, 32, 0),
    ("softplus", build.softplus, softplus, LINE, 32, 0),
    ("elu", build.elu, lambda x: np.where(x < 0, np.expm1(x), x), LINE, 24, 0),
    ("leaky_relu", build.leaky_relu, lambda x: np.where(x < 0, 0.01 * x, x), LINE, 2, 0),
    ("erf", build.erf, ERF, LINE, 4, 0),
    ("gelu", build.gelu, lambda x: x * phi(x), LINE, 4, 8),
    ("gelu_tanh", lambda x: build.gelu(x, "tanh"), gelu_tanh, LINE, 12, 16),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "function", "truth", "points", "relative", "absolute"), CASES, ids=[c[0] for c in CASES]
)
def test_a_function_is_as_accurate_as_stated(
    compute: Compute,
    name: str,
    function: Callable[[Tensor], Tensor],
    truth: Callable[[Any], Any],
    points: np.ndarray[Any, Any],
    relative: float,
    absolute: float,
    dtype: type,
):
    x = points.astype(dtype)
    epsilon = float(np.finfo(dtype).eps)
    actual = compute(function, x).astype(np.float64)
    np.testing.assert_allclose(actual, truth(x.astype(np.float64)), rtol=relative * epsilon, atol=absolute * epsilon)


@pytest.mark.parametrize(
    ("function", "truth", "points", "relative"),
    [
        (build.log1p, np.log1p, [1e19, 1e38, 3.4e38, -0.9999999], 4),
        (build.expm1, np.expm1, [80.0, 87.9, 88.7, -87.0], 100),
        (build.tan, np.tan, [1.5707, 1.5707963, -1.5707964, 4.712389, 33.0, 1e10, 1e38, 1e-30, 0.0], 4),
    ],
)
def test_a_function_is_as_accurate_near_overflow_and_poles(
    compute: Compute,
    function: Callable[[Tensor], Tensor],
    truth: Callable[[Any], Any],
    points: list[float],
    relative: int,
):
    x = np.array(points, np.float32)
    epsilon = float(np.finfo(np.float32).eps)
    np.testing.assert_allclose(compute(function, x), truth(x.astype(np.float64)), rtol=relative * epsilon)


INFINITY, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (build.exp, [0, INFINITY, NAN]),
        (build.expm1, [-1, INFINITY, NAN]),
        (build.log, [NAN, INFINITY, NAN]),
        (build.log1p, [NAN, INFINITY, NAN]),
        (build.sin, [NAN, NAN, NAN]),
        (build.cos, [NAN, NAN, NAN]),
        (build.sigmoid, [0, 1, NAN]),
        (build.tanh, [-1, 1, NAN]),
        (build.softplus, [0, INFINITY, NAN]),
        (build.elu, [-1, INFINITY, NAN]),
        (build.relu, [0, INFINITY, NAN]),
        (build.erf, [-1, 1, NAN]),
        (build.tan, [NAN, NAN, NAN]),
        (build.rsqrt, [NAN, 0, NAN]),
    ],
)
def test_infinities_and_nan_go_where_they_must(
    compute: Compute, function: Callable[[Tensor], Tensor], expected: list[float]
):
    x = np.array([-np.inf, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(compute(function, x), np.array(expected, np.float32))


def test_the_error_function_of_float64_is_accurate_to_its_last_bits(compute: Compute):
    x = np.linspace(-7, 7, 20001)
    np.testing.assert_allclose(compute(build.erf, x), ERF(x), rtol=4e-16 * 2)
