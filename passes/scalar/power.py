"""x to the power y, with the special cases of C (C17, annex F.10.4.4), whatever is known of y.

The magnitude is 2**(y * log2|x|), the logarithm and the product in more bits than the result has: an error in them is
multiplied by up to 1074 on the way.
"""

from __future__ import annotations

from .form import F32
from .number import Number, choose, literal
from .power_double import magnitude_of_doubles
from .power_single import magnitude_of_singles
from .traits import Traits


def power_of_floats(traits: Traits, x: Number, y: Number) -> Number:
    """x**y; 1 for y = 0 and for x = 1; NaN for a negative finite x and a finite y with a fraction."""
    form = x.form
    base, infinity = x.absolute(), float("inf")
    magnitude = (magnitude_of_singles if form == F32 else magnitude_of_doubles)(traits, x, y)
    is_whole, is_odd = _parity(y)
    sign = choose(is_odd, x.bits() & (1 << (form.bits - 1)), 0)
    signed = (magnitude.bits() | sign).reinterpreted(form)
    has_no_root = x.less(0.0) & base.less(infinity) & y.absolute().less(infinity) & ~is_whole
    invalid = has_no_root | x.is_nan() | y.is_nan()
    value = choose(invalid, float("nan"), signed)
    is_one = y.equals(0.0) | x.equals(1.0) | (base.equals(1.0) & y.absolute().equals(infinity))
    return choose(is_one, 1.0, value)


def power_of_constant(x: Number, exponent: float) -> Number | None:
    """x**exponent if one or two operations compute it, else None."""
    if exponent == 1.0:
        return x
    if exponent == 2.0:
        return x * x
    if exponent == -1.0:
        return 1.0 / x
    if exponent == 0.5:
        # Adding +0 makes -0, whose square root would be -0, into +0; and -inf has no square root but a power.
        infinity = float("inf")
        return choose(x.equals(-infinity), infinity, (x + 0.0).square_root())
    return None


def _parity(y: Number) -> tuple[Number, Number]:
    """Whether y is an integer, and whether it is an odd one. An infinity counts as even."""
    fraction = y.form.fraction
    size = y.absolute()
    unit = literal(y.form, 2.0**fraction)
    # From 2**fraction on every number is an integer; below, adding that leaves the integer in the low bits.
    shifted = size + unit
    is_small = size.less(2.0**fraction)
    is_whole = ~is_small | (shifted - unit).equals(size)
    low_bit = choose(is_small, shifted.bits(), size.bits()) & 1
    is_odd = is_whole & low_bit.differs(0) & size.less(2.0 ** (fraction + 1))
    return is_whole, is_odd
