"""Inverse trigonometric and hyperbolic functions, for which graphs have no nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ... import build
from ...build import Tensor
from ...dtypes import DType

ATAN_32 = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
"""Coefficients of x⁹, x⁷, x⁵ and x³, for |x| ≤ tan(π/8): `atanf` of the Cephes library (Moshier 1989)."""
ATAN_64 = (
    *(-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1),
    *(-1.228866684490136173410e2, -6.485021904942025371773e1),
)
ATAN_64_BELOW = (
    *(1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2),
    *(4.853903996359136964868e2, 1.945506571482613964425e2),
)
"""Numerator and denominator of `atan` there, for |x| ≤ 0.66."""


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Horner's rule, the highest power first."""
    first, second, *rest = coefficients
    total = x * first + second
    for coefficient in rest:
        total = total * x + coefficient
    return total


def atan(x: Tensor) -> Tensor:
    """Angles in radians, in the operand's float type; arguments are reduced by tan(a + b)."""
    is_wide = x.dtype is DType.FLOAT64
    size = build.absolute(x)
    is_large, is_middle = size > math.tan(3 * math.pi / 8), size > (0.66 if is_wide else math.tan(math.pi / 8))
    # Keep the second case, whose result is unused then, from dividing infinities.
    kept = build.where(is_large, 1.0, size)
    reduced = build.where(is_large, -1.0 / size, build.where(is_middle, (kept - 1.0) / (kept + 1.0), kept))
    turned = build.where(is_large, math.pi / 2, is_middle.cast(x.dtype) * (math.pi / 4))
    square = reduced * reduced
    if is_wide:
        slope = _polynomial(square, ATAN_64) / _polynomial(square, ATAN_64_BELOW)
    else:
        slope = _polynomial(square, ATAN_32)
    return _with_sign_of(x, turned + (reduced + reduced * (square * slope)))


def asin(x: Tensor) -> Tensor:
    return atan(x / ((1.0 - x) * (1.0 + x)).sqrt())


def acos(x: Tensor) -> Tensor:
    return atan(((1.0 - x) / (1.0 + x)).sqrt()) * 2.0


def sinh(x: Tensor) -> Tensor:
    """Accurate near 0; uses e^(|x| / 2) twice, so that it overflows only if the result does."""
    size = build.absolute(x)
    less = build.expm1(size)
    small = (less + less / (less + 1.0)) * 0.5
    half = (size * 0.5).exp()
    return _with_sign_of(x, build.where(size < 1.0, small, half * (half * 0.5) - 0.5 / half / half))


def cosh(x: Tensor) -> Tensor:
    half = (build.absolute(x) * 0.5).exp()
    return half * (half * 0.5) + 0.5 / half / half


def asinh(x: Tensor) -> Tensor:
    size = build.absolute(x)
    # Beyond 1e9 the 1 in x² + 1 is negligible; below, x² does not overflow.
    small = build.log1p(size + size * size / (1.0 + (size * size + 1.0).sqrt()))
    return _with_sign_of(x, build.where(size > 1e9, size.log() + math.log(2.0), small))


def acosh(x: Tensor) -> Tensor:
    less = x - 1.0
    small = build.log1p(less + (less * (x + 1.0)).sqrt())
    return build.where(x < 1.0, float("nan"), build.where(x > 1e9, x.log() + math.log(2.0), small))


def atanh(x: Tensor) -> Tensor:
    size = build.absolute(x)
    return _with_sign_of(x, build.log1p(size * 2.0 / (1.0 - size)) * 0.5)


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle in radians of the point (x, y), with the sign of `y`; zeros have signs as in IEEE 754."""
    across, up = build.absolute(x), build.absolute(y)
    larger, smaller = build.maximum(across, up), build.minimum(across, up)
    is_diagonal = build.equal(larger, smaller)
    ratio = build.where(is_diagonal, build.where(build.equal(larger, 0.0), larger, 1.0), smaller / larger)
    angle = atan(ratio)
    angle = build.where(up > across, math.pi / 2 - angle, angle)
    angle = build.where(is_negative(x), math.pi - angle, angle)
    return build.where(is_negative(y), -angle, angle)


def _with_sign_of(x: Tensor, result: Tensor) -> Tensor:
    """An odd function of `x`, from its `result` for |x|; zeros keep their sign."""
    return build.where(build.equal(x, 0.0), x, build.where(x < 0.0, -result, result))


def is_negative(x: Tensor) -> Tensor:
    """Whether the sign bit of `x` is set, also for zeros."""
    return (x < 0.0) | (build.equal(x, 0.0) & (1.0 / x < 0.0))


def in_wide_float(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """`function` of `x`, computed at least in float32 and rounded once to the type of `x`."""
    wide = x if x.dtype in (DType.FLOAT32, DType.FLOAT64) else x.cast(DType.FLOAT32)
    return function(wide).cast(x.dtype)
