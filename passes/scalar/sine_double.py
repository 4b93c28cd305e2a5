"""The sine of float64: the argument less a multiple of pi/2 as a pair, then the sine or the cosine on [-pi/4, pi/4]."""

from __future__ import annotations

from .exact import Pair, two_product, two_sum
from .form import F64
from .integers import nearest_integer
from .number import Number, choose, literal
from .polynomial import horner, multiply_add
from .traits import Traits
from .turns import Angle, quarter_turns_of_double

# (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4 in powers of r**2: minimax for the relative error by Remez
# exchange in 500-bit arithmetic, then rounded; errors 2**-56.5 and 2**-59.5.
_SINE = (
    -0.1666666666666663,
    0.00833333333332209,
    -0.0001984126982956611,
    2.75573136129508e-06,
    -2.5050746397795447e-08,
    1.5896148615437067e-10,
)
_COSINE = (
    0.041666666666666595,
    -0.0013888888888873017,
    2.480158728882584e-05,
    -2.755731417162133e-07,
    2.087569977236987e-09,
    -1.135847983701628e-11,
)
_TWO_OVER_PI = 0.6366197723675814
# pi/2 as a sum; without fused multiply-add in parts of 32 bits, whose products with a multiple of 21 bits are exact.
_HALF_PI_FUSED = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_HALF_PI_PLAIN = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
_BOUND = 2.0**18


def sine_of_double(traits: Traits, size: Number) -> Number:
    """sin(size) for a finite size >= 0."""
    near = _less_multiple(traits, size)
    far = quarter_turns_of_double(traits, size)
    is_near = size.less(_BOUND)
    quarters = choose(is_near, near.quarters, far.quarters)
    rest = Pair(choose(is_near, near.rest.high, far.rest.high), choose(is_near, near.rest.low, far.rest.low))
    square = rest.high * rest.high
    is_odd = (quarters & 1).differs(0)
    value = choose(is_odd, _cosine(traits, rest, square), _sine(traits, rest, square))
    return (value.bits() ^ ((quarters >> 1) << 63)).reinterpreted(F64)


def _less_multiple(traits: Traits, size: Number) -> Angle:
    """size - multiple * pi/2, to about one and a half times the precision; meaningless beyond the bound."""
    multiple, quarters = nearest_integer(size * _TWO_OVER_PI)
    first, *middle, last = _HALF_PI_FUSED if traits.has_fma else _HALF_PI_PLAIN
    rest = Pair(multiply_add(traits, -multiple, first, size), literal(F64, 0.0))
    for part in middle:
        product = _product(traits, multiple, part)
        difference = two_sum(rest.high, -product.high)
        rest = Pair(difference.high, rest.low + (difference.low - product.low))
    low = multiply_add(traits, -multiple, last, rest.low)
    # If the leading parts cancel, the rest of the others is not small compared to the difference.
    return Angle(quarters, two_sum(rest.high, low))


def _product(traits: Traits, multiple: Number, part: float) -> Pair:
    constant = literal(F64, part)
    if traits.has_fma:
        return two_product(traits, multiple, constant)
    return Pair(multiple * constant, literal(F64, 0.0))


def _sine(traits: Traits, rest: Pair, square: Number) -> Number:
    """sin(high + low) = high + (high**3 * S(high**2) + low)."""
    cubic = rest.high * (square * horner(traits, square, _SINE))
    return rest.high + (cubic + rest.low)


def _cosine(traits: Traits, rest: Pair, square: Number) -> Number:
    """cos(high + low) = 1 - h + (high**4 * C(high**2) - high * low) with h = high**2 / 2; the rounding error of 1 - h
    is added back.
    """
    half = square * 0.5
    leading = 1.0 - half
    lost = (1.0 - leading) - half
    quartic = square * (square * horner(traits, square, _COSINE))
    return leading + (lost + (quartic - rest.high * rest.low))
