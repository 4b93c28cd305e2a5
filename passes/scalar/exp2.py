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


def exp2(traits: Traits, x: Number, *, is_at_most_zero: bool = False) -> Number:
    """inf above the largest exponent, denormals and then 0 below the least, NaN for NaN; exact for integers.

    If x is known to be at most 0, or NaN, this takes fewer operations.

    A 0 is not computed by rounding: an operation that underflows takes a CPU a hundred cycles, and a masked softmax has
    many zeros.
    """
    if not _scales(traits, x):
        return _at_most_one(traits, x) if is_at_most_zero else _by_two_factors(traits, x)
    is_zero = x.less(-float(x.form.bias + x.form.fraction))
    return _by_instruction(traits, x if is_at_most_zero else _at_most(x, x.form.bias + 2), is_zero)


def normal_exp2(traits: Traits, x: Number) -> Number:
    """2**x for x of at most 0, or NaN; 0 instead of a denormal, since operations with these take a hundred cycles."""
    is_zero = x.less(1.0 - x.form.bias)
    if _scales(traits, x):
        return _by_instruction(traits, x, is_zero)
    bounded = choose(is_zero, 0.0, x)
    rounder = 1.5 * 2.0**x.form.fraction + x.form.bias
    total = bounded + rounder
    power = (total.bits() << x.form.fraction).reinterpreted(x.form)
    return choose(is_zero, 0.0, _fraction(traits, bounded - (total - rounder)) * power)


def _scales(traits: Traits, x: Number) -> bool:
    """Whether there is an operation for `Number.scaled`. That of MLIR takes no vectors."""
    return traits.has_scaling and not x.form.lanes


def _by_instruction(traits: Traits, x: Number, is_zero: Number) -> Number:
    bounded = choose(is_zero, 0.0, x)
    power = bounded.to_nearest_integer()
    return choose(is_zero, 0.0, _fraction(traits, bounded - power.to_float(x.form, signed=True)).scaled(power))


def _by_two_factors(traits: Traits, x: Number) -> Number:
    bounded = within_powers(x)
    # The low bits of the sum are n + 2*bias, for the integer n nearest to x.
    rounder = 1.5 * 2.0**x.form.fraction + 2 * x.form.bias
    total = bounded + rounder
    first, second = _two_powers(bounded, total.bits(), bounded.bits().less(0))
    return _fraction(traits, bounded - (total - rounder)) * first * second


def _at_most_one(traits: Traits, x: Number) -> Number:
    """The factors are 2**(n + shift), which is no denormal and is 0 for the least n, and 2**-shift."""
    shift = x.form.fraction + 1
    least = -float(x.form.bias + shift)
    bounded = choose(x.less(least), least, x)
    rounder = 1.5 * 2.0**x.form.fraction + x.form.bias + shift
    total = bounded + rounder
    power = (total.bits() << x.form.fraction).reinterpreted(x.form)
    return _fraction(traits, bounded - (total - rounder)) * power * 2.0**-shift


def _at_most(x: Number, high: float) -> Number:
    return choose(x.greater(high), high, x)


def _fraction(traits: Traits, x: Number) -> Number:
    """2**x on [-1/2, 1/2]."""
    coefficients = SINGLE if x.form.over(0) == F32 else DOUBLE
    return multiply_add(traits, x, horner(traits, x, coefficients), 1.0)


def within_powers(x: Number) -> Number:
    """x, or the nearest of the powers of two between which `scaled` is 0 and infinite; NaN for NaN."""
    least = -float(x.form.bias + x.form.fraction + 1)
    below = _at_most(x, x.form.bias + 2)
    return choose(below.less(least), least, below)


def scaled(x: Number, power: Number) -> Number:
    """x * 2**power, rounded once, for x up to 2**fraction in magnitude, and a power that `within_powers` leaves."""
    first, second = _two_powers(x, power + 2 * x.form.bias, power.less(0))
    return x * first * second


def _two_powers(model: Number, field: Number, is_negative: Number) -> tuple[Number, Number]:
    """Two factors of 2**n for n + 2*bias in the low bits of `field`: 2**n itself may overflow or be a denormal.

    One factor is 2**-(fraction + 1) if n is negative, else 2. The other one is 0 for the least n, and infinite for the
    greatest.
    """
    form = model.form
    first = choose(is_negative, model.literal(2.0 ** -(form.fraction + 1)), model.literal(2.0))
    # The field less the exponent field of one factor is that of the other.
    return first, ((field << form.fraction) - first.bits()).reinterpreted(form)


def power_of_two(form: Form, power: Number) -> Number:
    """2**power where that is a normal number."""
    return ((power + form.bias) << form.fraction).reinterpreted(form)
