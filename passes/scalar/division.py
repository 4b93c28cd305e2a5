"""Integer quotient and remainder, truncating. x / 0 is 0, x mod 0 is x, the least integer by -1 wraps to itself.

No vector unit divides integers, but it divides floats, and a correctly rounded quotient truncates to the integer one
when the float has enough bits: the next integer is at least 1/b away, the rounding error at most (a/b) * 2**-p, so
a < 2**p is enough for p bits. Hence 8 and 16 bits go through float32 and 32 bits through float64. A constant divisor
stays an integer division: LLVM multiplies by its reciprocal.
"""

from __future__ import annotations

from dialect.mlir import arith
from tensorkiln.dtypes import DType

from .form import F32, F64, I32, Form
from .number import Number, choose, constant_of

_THROUGH: dict[int, Form] = {8: F32, 16: F32, 32: F64}


def divide_integers(dtype: DType, a: Number, b: Number) -> Number:
    """a / b, rounded towards 0."""
    quotient = _quotient(dtype, a, b)
    by_minus_one = choose(b.equals(-1), -a, quotient) if dtype.is_signed else quotient
    return choose(b.equals(0), 0, by_minus_one)


def remainder_of_integers(dtype: DType, a: Number, b: Number) -> Number:
    """a - (a / b) * b, with the sign of a."""
    remainder = a - _quotient(dtype, a, b) * b
    wrapped = choose(b.equals(-1), 0, remainder) if dtype.is_signed else remainder
    return choose(b.equals(0), a, wrapped)


def _quotient(dtype: DType, a: Number, b: Number) -> Number:
    """a / b, with b replaced by 1 if it is 0 or -1, which would trap or overflow."""
    is_unsafe = b.equals(0) | b.equals(-1) if dtype.is_signed else b.equals(0)
    divisor = choose(is_unsafe, 1, b)
    form = _THROUGH.get(a.form.bits)
    if form is None or constant_of(b.value) is not None:
        emit = arith.divsi if dtype.is_signed else arith.divui
        return Number(emit(a.value, divisor.value), a.form)
    ratio = a.to_float(form, signed=dtype.is_signed) / divisor.to_float(form, signed=dtype.is_signed)
    if dtype.is_signed or a.form.bits < 32:
        return ratio.to_integer(I32).truncated(a.form)
    return _to_unsigned(ratio)


def _to_unsigned(ratio: Number) -> Number:
    """A float64 in 0 .. 2**32 - 1 truncated to 32 bits, without the conversion to 64 bits that AVX2 does not have.

    In float64 the unit in the last place of 2**52 is 1, so adding it leaves the nearest integer in the low bits.
    """
    shifted = ratio + 2.0**52
    nearest = shifted.bits().truncated(I32)
    is_above = (shifted - 2.0**52).greater(ratio)
    return nearest - is_above.zero_extended(I32)
