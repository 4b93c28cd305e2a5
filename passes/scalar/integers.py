"""Convert between floats and small integers by adding a number whose unit in the last place is 1.

It needs no conversion instruction, which AVX2 lacks for 64 bits, and cannot trap or give poison.
"""

from __future__ import annotations

from .form import F64, Form
from .number import Number, literal


def nearest_integer(x: Number) -> tuple[Number, Number]:
    """The integer nearest to x, ties to even, as a float and as an integer, for |x| < 2**(fraction - 2).

    Both are meaningless for any other x.
    """
    rounder = x.literal(_rounder(x.form))
    shifted = x + rounder
    return shifted - rounder, shifted.bits() - rounder.bits()


def small_integer_to_float(integer: Number, form: Form) -> Number:
    """A signed integer as wide as `form`, below 2**(fraction - 1) in magnitude, as a float."""
    if form != F64:
        return integer.to_float(form, signed=True)
    rounder = literal(form, _rounder(form))
    return (integer + rounder.bits()).reinterpreted(form) - rounder


def word_to_double(word: Number) -> Number:
    """An i64 in 0 .. 2**32 - 1 as a float64: the word put into the fraction of 2**52, less 2**52."""
    base = literal(F64, 2.0**52)
    return (word | base.bits()).reinterpreted(F64) - base


def _rounder(form: Form) -> float:
    return 1.5 * 2.0**form.fraction
