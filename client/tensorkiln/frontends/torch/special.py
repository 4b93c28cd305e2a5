"""The logarithm of the gamma function, its derivative, and the inverse of the error function, computed in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .call import Operator

SHIFT: Final = 7.0
FIRST: Final = 0.99999999999980993227684700473478
WEIGHTS: Final = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
"""Lanczos' approximation with nine terms, by Godfrey: https://www.numericana.com/answer/info/godfrey.htm."""

NEAR: Final = (
    (-0.140543331, 0.914624893, -1.645349621, 0.886226899),
    (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0),
)
FAR: Final = ((1.641345311, 3.429567803, -1.624906493, -1.970840454), (1.6370678, 3.5438892, 1.0))
"""Quotients of polynomials, which torch takes as first approximations to the inverse of erf."""


def _in_float64(function: Callable[[Tensor], Tensor]) -> Operator:
    return lambda call: function(call.tensor().cast(call.dtype).cast(DType.FLOAT64)).cast(call.dtype)


def _reflected(x: Tensor) -> tuple[Tensor, Tensor]:
    """Where `x` is below 1/2, and then the number `-x`, elsewhere `x - 1`."""
    is_low = x < 0.5
    return is_low, build.where(is_low, -x, x - 1.0)


def log_gamma(x: Tensor) -> Tensor:
    """log |gamma(x)|, infinite at 0, at negative integers and at infinities."""
    is_low, z = _reflected(x)
    series = build.full(x.builder, x.shape, FIRST, x.dtype)
    for place, weight in enumerate(WEIGHTS):
        series = series + weight / (z + (place + 1.0))
    base = z + (SHIFT + 0.5)
    found = 0.5 * math.log(2.0 * math.pi) + (z + 0.5) * build.log(base) - base + build.log(series)
    size = build.absolute(x)
    fraction = size - build.floor(size)
    # The sine of pi times the fraction, the same around 1/2: near 1, pi times the fraction would be rounded.
    sine = build.sin(math.pi * build.minimum(fraction, 1.0 - fraction))
    mirrored = math.log(math.pi) - build.log(sine) - found
    return build.where(build.equal(size, math.inf), math.inf, build.where(is_low, mirrored, found))


def digamma(x: Tensor) -> Tensor:
    """The derivative of log gamma; NaN at negative integers, and infinite at 0 with the opposite of its sign."""
    is_low, z = _reflected(x)
    series = build.full(x.builder, x.shape, FIRST, x.dtype)
    slope = build.zeros(x.builder, x.shape, x.dtype)
    for place, weight in enumerate(WEIGHTS):
        term = z + (place + 1.0)
        series = series + weight / term
        slope = slope - weight / (term * term)
    base = z + (SHIFT + 0.5)
    found = build.log(base) + slope / series - SHIFT / base
    found = build.where(build.equal(x, math.inf), math.inf, found)
    fraction = x - build.floor(x)
    near = build.where(fraction > 0.5, fraction - 1.0, fraction)
    mirrored = found - math.pi / build.tan(math.pi * near)
    is_pole = (x < 0) & build.equal(fraction, 0)
    mirrored = build.where(is_pole, math.nan, mirrored)
    return build.where(is_low, build.where(build.equal(x, 0), -1.0 / x, mirrored), found)


def inverse_erf(x: Tensor) -> Tensor:
    """The number whose erf is `x`: NaN outside of [-1, 1], infinite at its ends."""
    size = build.absolute(x)
    squared = x * x
    near = x * _polynomial(squared, NEAR[0]) / _polynomial(squared, NEAR[1])
    root = build.sqrt(-build.log((1.0 - size) / 2.0))
    far = _polynomial(root, FAR[0]) / _polynomial(root, FAR[1])
    found = build.where(size <= 0.7, near, build.where(x < 0, -far, far))
    for _ in range(2):
        found = found - (build.erf(found) - x) / (2.0 / math.sqrt(math.pi) * build.exp(-found * found))
    return build.where(build.equal(size, 1.0), x * math.inf, found)


def _polynomial(x: Tensor, weights: tuple[float, ...]) -> Tensor:
    found = build.full(x.builder, x.shape, weights[0], x.dtype)
    for weight in weights[1:]:
        found = found * x + weight
    return found


OPERATORS: dict[str, Operator] = {
    "aten.digamma.default": _in_float64(digamma),
    "aten.erfinv.default": _in_float64(inverse_erf),
    "aten.lgamma.default": _in_float64(log_gamma),
}
