"""Integer powers by squaring, modulo the width. A negative exponent gives the truncated reciprocal."""

from __future__ import annotations

from tensorkiln.dtypes import DType

from .number import Number, choose


def power_of_integers(dtype: DType, base: Number, exponent: Number) -> Number:
    """base**exponent wrapped; for a negative exponent 0, except 1 for base 1 and plus or minus 1 for base -1."""
    # One step a bit, without a loop: the exponent of each lane may differ and lanes go together.
    exponent_bits = base.form.bits - 1 if dtype.is_signed else base.form.bits
    result = base.literal(1)
    square = base
    for bit in range(exponent_bits):
        if bit:
            square = square * square
        is_set = (exponent & (1 << bit)).differs(0)
        result = choose(is_set, result * square, result)
    if not dtype.is_signed:
        return result
    is_odd = (exponent & 1).differs(0)
    of_minus_one = choose(is_odd, base.literal(-1), 1)
    reciprocal = choose(base.equals(-1), of_minus_one, choose(base.equals(1), base.literal(1), 0))
    return choose(exponent.less(0), reciprocal, result)
