"""2**x: an integer power by exponent arithmetic times a polynomial on [-1/2, 1/2].

Coefficients: minimax for the relative error of 2**r, by Remez exchange in 500-bit arithmetic, then rounded to the
form. The error of the polynomial is 2**-27.6 in float32 and 2**-56.4 in float64.
"""

from __future__ import annotations

from .form import F32, Form
from .number import Number, choose
from .polynomial import horner, multiply_add
from .traits import Traits

# (2**r - 1) / r
SINGLE = (
    0.6931471824645996,
    0.24022646248340607,
    0.05550345033407211,
    0.009618543088436127,
    0.0013398880837485194,
    0.0001535335322842002,
)
DOUBLE = (
    0.6931471805599453,
    0.24022650695910128,
    0.055504108664820306,
    0.009618129107594327,
    0.001333355814677464,
    0.00015403530457110451,
    1.5252733493130577e-05,
    1.3215435282994063e-06,
    1.0178199577769851e-07,
    7.073783150994522e-09,
    4.4347696738211786e-10,
)


def exp2(traits: Traits, x: Number) -> Number:
    """inf above the largest exponent, denormals and then 0 below the least, NaN for NaN; exact for integers.

    A 0 is not computed by rounding: an operation that underflows takes a CPU a hundred cycles, and a masked softmax has
    many zeros.
    """
    return _by_instruction(traits, x) if traits.has_scaling else _by_two_factors(traits, x)


def _by_instruction(traits: Traits, x: Number) -> Number:
    is_zero = x.less(-float(x.form.bias + x.form.fraction))
    bounded = choose(is_zero, 0.0, _at_most(x, x.form.bias + 2))
    power = bounded.to_nearest_integer()
    return choose(is_zero, 0.0, _fraction(traits, bounded - power.to_float(x.form, signed=True)).scaled(power))


def _by_two_factors(traits: Traits, x: Number) -> Number:
    """2**n for the integer n nearest to x may exceed a float at both ends, so it is the product of two powers.

    One is 2**-(fraction + 1) if x is negative, else 2. The other one is 0 for the least n, and infinite for the
    greatest.
    """
    form = x.form
    least = -float(form.bias + form.fraction + 1)
    below = _at_most(x, form.bias + 2)
    bounded = choose(below.less(least), least, below)
    # The low bits of the sum are n + 2*bias. Less the exponent field of one factor, they are that of the other.
    rounder = 1.5 * 2.0**form.fraction + 2 * form.bias
    total = bounded + rounder
    first = choose(bounded.bits().less(0), x.literal(2.0 ** -(form.fraction + 1)), x.literal(2.0))
    second = ((total.bits() << form.fraction) - first.bits()).reinterpreted(form)
    return _fraction(traits, bounded - (total - rounder)) * first * second


def _at_most(x: Number, high: float) -> Number:
    return choose(x.greater(high), high, x)


def _fraction(traits: Traits, x: Number) -> Number:
    """2**x on [-1/2, 1/2]."""
    coefficients = SINGLE if x.form.over(0) == F32 else DOUBLE
    return multiply_add(traits, x, horner(traits, x, coefficients), 1.0)


def scaled(x: Number, power: Number) -> Number:
    """x * 2**power in two factors, since 2**power itself may overflow or be a denormal."""
    half = power.arithmetic_shift(1)
    return x * power_of_two(x.form, half) * power_of_two(x.form, power - half)


def power_of_two(form: Form, power: Number) -> Number:
    """2**power where that is a normal number."""
    return ((power + form.bias) << form.fraction).reinterpreted(form)
