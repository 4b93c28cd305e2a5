"""Nonlinearities of neural networks, elementwise. float16 and bfloat16 are computed in float32 and rounded once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from ..dtypes import DType
from ..nearest import quoted
from .arithmetic import absolute, add, divide, maximum, mul, negate, sub
from .comparison import less
from .conversion import in_float32
from .error_function import erf
from .operands import need
from .selection import where
from .transcendental import exp, expm1, log1p

if TYPE_CHECKING:
    from .tensor import Tensor


def relu(x: Tensor) -> Tensor:
    """`max(x, 0)`; NaN stays NaN."""
    need(x, "relu", floats=True, integers=True)
    return maximum(x, 0)


def leaky_relu(x: Tensor, slope: float = 0.01) -> Tensor:
    """`x` where it is positive, `slope * x` elsewhere."""
    need(x, "leaky_relu", floats=True)
    return where(less(x, 0.0), mul(x, slope), x)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """`x` where it is positive, `alpha * (exp(x) - 1)` elsewhere."""
    return in_float32(lambda y: where(less(y, 0.0), mul(expm1(y), alpha), y), x, "elu")


def sigmoid(x: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return in_float32(_sigmoid, x, "sigmoid")


def _sigmoid(x: Tensor) -> Tensor:
    return divide(1.0, add(exp(negate(x)), 1.0))


def silu(x: Tensor) -> Tensor:
    """`x * sigmoid(x)`."""
    return in_float32(lambda y: mul(y, _sigmoid(y)), x, "silu")


def softplus(x: Tensor) -> Tensor:
    """`log(1 + exp(x))`, without overflow."""
    return in_float32(lambda y: add(maximum(y, 0.0), log1p(exp(negate(absolute(y))))), x, "softplus")


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent: `1 - 2 / (exp(2x) + 1)`, and its power series below 1/4, where that would cancel."""
    return in_float32(_tanh, x, "tanh")


def _tanh(x: Tensor) -> Tensor:
    far = sub(1.0, divide(2.0, add(exp(mul(x, 2.0)), 1.0)))
    square = mul(x, x)
    series = _TANH_SERIES[: 11 if x.dtype is DType.FLOAT64 else 5]
    near = x.builder.scalar(series[-1], x.dtype)
    for coefficient in reversed(series[:-1]):
        near = add(mul(near, square), coefficient)
    return where(less(absolute(x), 0.25), mul(near, x), far)


def _tanh_series(terms: int) -> tuple[float, ...]:
    """Coefficients of x, x**3, x**5, … from tanh' = 1 - tanh**2; the ratio of two is about -4 / pi**2."""
    series = [Fraction(1)]
    for order in range(1, terms):
        square = sum((series[i] * series[order - 1 - i] for i in range(order)), Fraction(0))
        series.append(-square / (2 * order + 1))
    return tuple(map(float, series))


_TANH_SERIES = _tanh_series(11)


def gelu(x: Tensor, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """`x` times the normal distribution function of `x`, or its tanh approximation (Hendrycks and Gimpel 2016)."""
    if approximate == "none":
        return in_float32(lambda y: mul(mul(y, 0.5), add(erf(mul(y, math.sqrt(0.5))), 1.0)), x, "gelu")
    need(x, "gelu", floats=True)
    if approximate != "tanh":  # pyright: ignore[reportUnnecessaryComparison]  # callers are users
        raise x.builder.error(f"gelu is approximated by 'none' or 'tanh', not by {quoted(approximate)}")
    return in_float32(_gelu_tanh, x, "gelu")


def _gelu_tanh(x: Tensor) -> Tensor:
    cube = mul(mul(mul(x, x), x), 0.044715)
    return mul(mul(x, 0.5), add(_tanh(mul(add(x, cube), math.sqrt(2.0 / math.pi))), 1.0))
