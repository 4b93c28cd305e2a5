"""Powers, logarithms and circular functions. float16 and bfloat16 are computed in float32 and rounded once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .arithmetic import divide, mul, sub, unary
from .comparison import equal
from .conversion import in_float32
from .selection import where

if TYPE_CHECKING:
    from .tensor import Tensor

_LOG2_E = math.log2(math.e)
_LN_2 = math.log(2.0)
_LOG10_2 = math.log10(2.0)


def sqrt(x: Tensor) -> Tensor:
    """The square root; NaN below zero."""
    return in_float32(lambda y: unary("sqrt", y), x, "sqrt")


def reciprocal(x: Tensor) -> Tensor:
    """`1 / x`."""
    return in_float32(lambda y: unary("recip", y), x, "reciprocal")


def rsqrt(x: Tensor) -> Tensor:
    """`1 / sqrt(x)`."""
    return in_float32(lambda y: unary("recip", unary("sqrt", y)), x, "rsqrt")


def exp2(x: Tensor) -> Tensor:
    """`2 ** x`."""
    return in_float32(lambda y: unary("exp2", y), x, "exp2")


def exp(x: Tensor) -> Tensor:
    """e to the power `x`, as `2 ** (x * log2(e))`: the product's rounding makes the relative error grow as |x| / 2**24
    in float32 and as |x| / 2**53 in float64.
    """
    return in_float32(_exp, x, "exp")


def _exp(x: Tensor) -> Tensor:
    return unary("exp2", mul(x, _LOG2_E))


def expm1(x: Tensor) -> Tensor:
    """`exp(x) - 1` without cancellation near 0, by Kahan's correction `(u - 1) * (x / log(u))` with u = exp(x)."""
    return in_float32(_expm1, x, "expm1")


def _expm1(x: Tensor) -> Tensor:
    u = _exp(x)
    less_one = sub(u, 1.0)
    # Compute the quotient, near 1, first: the product alone may overflow.
    corrected = mul(less_one, divide(x, _log(u)))
    is_far = equal(less_one, -1.0) | equal(u, math.inf)
    return where(equal(u, 1.0), x, where(is_far, less_one, corrected))


def log2(x: Tensor) -> Tensor:
    """The binary logarithm; -inf at 0 and NaN below."""
    return in_float32(lambda y: unary("log2", y), x, "log2")


def log(x: Tensor) -> Tensor:
    """The natural logarithm; -inf at 0 and NaN below."""
    return in_float32(_log, x, "log")


def _log(x: Tensor) -> Tensor:
    return mul(unary("log2", x), _LN_2)


def log10(x: Tensor) -> Tensor:
    """The decimal logarithm; -inf at 0 and NaN below."""
    return in_float32(lambda y: mul(unary("log2", y), _LOG10_2), x, "log10")


def log1p(x: Tensor) -> Tensor:
    """`log(1 + x)` without cancellation near 0, by Kahan's correction `log(u) * (x / (u - 1))` with u = 1 + x."""
    return in_float32(_log1p, x, "log1p")


def _log1p(x: Tensor) -> Tensor:
    u = x + 1.0
    # Compute the quotient first, as above.
    corrected = mul(_log(u), divide(x, sub(u, 1.0)))
    return where(equal(u, 1.0), x, where(equal(u, math.inf), u, corrected))


def sin(x: Tensor) -> Tensor:
    """The sine of radians."""
    return in_float32(lambda y: unary("sin", y), x, "sin")


def cos(x: Tensor) -> Tensor:
    """The cosine of radians, as `1 - 2 * sin(x / 2) ** 2`: x / 2 is exact, where x + pi / 2 would lose large angles."""
    return in_float32(_cos, x, "cos")


def _cos(x: Tensor) -> Tensor:
    half = unary("sin", mul(x, 0.5))
    return sub(1.0, mul(mul(half, half), 2.0))


def tan(x: Tensor) -> Tensor:
    """The tangent of radians, as `2 * sin(x) ** 2 / sin(2 * x)`: 2 * x is exact, and near a pole the sine of that is as
    exact as anywhere, which `cos(x)` is not. Where 2 * x is infinite it is `sin(x) / cos(x)`.
    """
    return in_float32(_tan, x, "tan")


def _tan(x: Tensor) -> Tensor:
    sine, double = unary("sin", x), unary("sin", mul(x, 2.0))
    near = mul(sine, divide(mul(sine, 2.0), double))
    found = where(equal(double, double), near, divide(sine, _cos(x)))
    return where(equal(sine, 0.0), sine, found)
