"""The binary logarithm: the exponent plus a polynomial of the significand, which is taken in [sqrt(1/2), sqrt(2)).

Coefficients: minimax by Remez exchange in 500-bit arithmetic, then rounded to the form.
"""

from __future__ import annotations

from .form import F32, F64, Form
from .integers import small_integer_to_float
from .number import Number, choose
from .polynomial import horner, multiply_add
from .traits import Traits

# (log2(1 + f) / f - log2(e)) / f, relative error of log2(1 + f): 2**-27.4
SINGLE = (
    -0.7213473320007324,
    0.4808982312679291,
    -0.36069679260253906,
    0.28856760263442993,
    -0.23961852490901947,
    0.20460063219070435,
    -0.1910557597875595,
    0.1861717253923416,
    -0.10995952039957047,
)
# (2 * atanh(s) / s - 2) / s**2 in powers of s**2, error relative to 2 * atanh(s): 2**-59
DOUBLE = (
    0.6666666666666734,
    0.39999999999416647,
    0.28571428742026656,
    0.2222219860521607,
    0.18183562843180204,
    0.1531408503441549,
    0.14795631597234002,
)


Parts = tuple[Number, Number]
"""`(exponent, f)` with x = (1 + f) * 2**exponent and sqrt(1/2) <= 1 + f < sqrt(2), the exponent as a float."""


def log2(traits: Traits, x: Number) -> Number:
    """-inf at +0 and -0, NaN below 0, inf at inf, NaN for NaN; denormals are exact arguments like any other."""
    exponent, f = decomposed(x)
    finite = (_single if x.form == F32 else _double)(traits, exponent, f)
    infinity = float("inf")
    not_infinite = choose(x.equals(infinity), infinity, finite)
    valid = choose(x.at_least(0.0), not_infinite, float("nan"))
    return choose(x.equals(0.0), -infinity, valid)


def decomposed(x: Number) -> Parts:
    """The parts of a positive finite number; arbitrary finite numbers for anything else."""
    form = x.form
    is_tiny = x.less(2.0 ** (1 - form.bias))
    shift = form.fraction + 1
    exponent, f = decomposed_normal(choose(is_tiny, x * 2.0**shift, x))
    return choose(is_tiny, exponent - shift, exponent), f


def decomposed_normal(x: Number) -> Parts:
    """The parts of a positive normal number; arbitrary finite numbers for anything else."""
    form, pattern = x.form, x.bits()
    # Counting from the bits of sqrt(1/2) makes the exponent field change there instead of at 1.
    power = (pattern - _SQRT_HALF[form]).arithmetic_shift(form.fraction)
    significand = (pattern - (power << form.fraction)).reinterpreted(form)
    return small_integer_to_float(power, form), significand - 1.0


_SQRT_HALF: dict[Form, int] = {F32: 0x3F3504F3, F64: 0x3FE6A09E667F3BCD}


def _single(traits: Traits, exponent: Number, f: Number) -> Number:
    """log2(1 + f) = f * log2(e) + f**2 * Q(f), log2(e) as a constant of 12 bits and the rest.

    Without fused multiply-add the product with the first is split so that its larger part is exact.
    """
    quadratic = (f * f) * horner(traits, f, SINGLE)
    tail = multiply_add(traits, f, _LOG2E_LOW, quadratic)
    if traits.has_fma:
        return exponent + multiply_add(traits, f, _LOG2E_HIGH, tail)
    upper = (f.bits() & 0xFFFFF000).reinterpreted(F32)
    return _summed(exponent, upper * _LOG2E_HIGH, tail + (f - upper) * _LOG2E_HIGH)


def _summed(exponent: Number, high: Number, low: Number) -> Number:
    """exponent + high + low, where the exponent is 0 or not below high."""
    total = exponent + high
    return total + (low + ((exponent - total) + high))


_LOG2E_HIGH, _LOG2E_LOW = 1.4423828125, 0.00031222838896340733


def _double(traits: Traits, exponent: Number, f: Number) -> Number:
    """log(1 + f) = f - (h - s * (h + R(s**2))) with s = f / (2 + f) and h = f**2 / 2, where f - h is split so that its
    upper half times that of log2(e) is exact.

    Source of the arrangement: FreeBSD's e_log2.c.
    """
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    rest = s * multiply_add(traits, z, horner(traits, z, DOUBLE), half_square)
    difference = f - half_square
    high = (difference.bits() & 0xFFFFFFFF00000000).reinterpreted(F64)
    low = (f - high) - half_square + rest
    product_high = high * _LOG2E_HIGH_64
    product_low = (low + high) * _LOG2E_LOW_64 + low * _LOG2E_HIGH_64
    return _summed(exponent, product_high, product_low)


_LOG2E_HIGH_64 = 1.4426950407214463
_LOG2E_LOW_64 = 1.6751713164886512e-10
