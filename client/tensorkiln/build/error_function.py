"""The error function from elementwise nodes, to the precision of its dtype.

Below 1, `x * near(x**2)`. Above, `1 - exp(-x**2) * tail(1 / (1 + 0.35 * x))` up to the point where erf rounds to 1.
Both polynomials are Chebyshev fits made for this file in 50-digit arithmetic; their errors, relative to what they
approximate, are 1.2e-9 and 2.6e-8 (scaled by exp(-1) at most) for float32, and 7.4e-18 and 4.0e-18 for float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from .arithmetic import absolute, add, minimum, mul, negate, sub
from .comparison import less
from .conversion import in_float32
from .selection import where
from .transcendental import exp, reciprocal

if TYPE_CHECKING:
    from .tensor import Tensor

_TAIL_SCALE = 0.35
_SATURATION_32 = 4.1
_SATURATION_64 = 6.0

_NEAR_32 = (
    7.875875062685488e-05,
    -0.000801686428716587,
    0.005189087423433974,
    -0.026854212010626412,
    0.11283594715160218,
    -0.37612626666720334,
    1.1283791658483509,
)
_NEAR_64 = (
    -7.795898827002142e-10,
    1.3720064546777686e-08,
    -1.6208483801871705e-07,
    1.6447424703317362e-06,
    -1.492473690741966e-05,
    0.00012055294904839707,
    -0.0008548325975389692,
    0.0052239776071164225,
    -0.02686617064323777,
    0.11283791670945006,
    -0.37612638903183543,
    1.1283791670955126,
)
_TAIL_32 = (
    0.5966350079868536,
    -0.47587975602452837,
    0.6173206895683591,
    0.035212168542925734,
    0.2298589067516798,
    -0.0026935704738549086,
)
_TAIL_64 = (
    -0.013244928042022678,
    0.1217317063283234,
    -0.4955631406895651,
    1.1677645453962568,
    -1.763684937834294,
    1.838552693187634,
    -1.4533222228611589,
    0.8813162020962932,
    -0.35013554596635216,
    0.23012792078601274,
    0.08794559333616292,
    0.16932495776721712,
    0.184132327333364,
    0.19759669570808217,
    0.19745788247316914,
    2.5646415901437437e-07,
)


def erf(x: Tensor) -> Tensor:
    """The error function; float16 and bfloat16 are computed in float32 and rounded once."""
    return in_float32(_erf, x, "erf")


def _erf(x: Tensor) -> Tensor:
    is_double = x.dtype is DType.FLOAT64
    size = absolute(x)
    near = mul(x, _polynomial(mul(x, x), _NEAR_64 if is_double else _NEAR_32))
    reach = minimum(size, _SATURATION_64 if is_double else _SATURATION_32)
    ratio = reciprocal(add(mul(reach, _TAIL_SCALE), 1.0))
    tail = mul(exp(negate(mul(reach, reach))), _polynomial(ratio, _TAIL_64 if is_double else _TAIL_32))
    far = sub(1.0, tail)
    return where(less(size, 1.0), near, where(less(x, 0.0), negate(far), far))


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Horner's rule, the highest power first."""
    total = x.builder.scalar(coefficients[0], x.dtype)
    for coefficient in coefficients[1:]:
        total = add(mul(total, x), coefficient)
    return total
