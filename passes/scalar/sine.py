"""The sine: the argument less its nearest multiple of pi/2, then the sine or the cosine on [-pi/4, pi/4].

Up to a bound the multiple is subtracted in parts whose products are exact (W. J. Cody, W. Waite, "Software manual for
the elementary functions", 1980); beyond, the reduction of Payne and Hanek takes over. Both are computed and one is
chosen, so that a loop over the elements has no branch.
"""

from __future__ import annotations

from dataclasses import dataclass

from .exact import Pair, two_product, two_sum
from .form import F32
from .integers import nearest_integer
from .number import Number, choose, literal
from .polynomial import horner, multiply_add
from .traits import Traits
from .turns import Angle, reduced_double, reduced_single


@dataclass(frozen=True, slots=True)
class _Method:
    """How one form is done.

    `fused` and `plain` are pi/2 as a sum of parts, for arguments below `bound`; the parts of `plain` have few enough
    bits that all products with the multiple but the last are exact without fused multiply-add. `sine` is
    (sin(r) / r - 1) / r**2 and `cosine` (cos(r) - 1 + r**2 / 2) / r**4 in powers of r**2: minimax for the relative
    error by Remez exchange in 500-bit arithmetic, then rounded to the form.
    """

    bound: float
    fused: tuple[float, ...]
    plain: tuple[float, ...]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


# Errors of the polynomials: 2**-27.8 and 2**-33 in float32, 2**-56.5 and 2**-59.5 in float64.
_METHODS = {
    32: _Method(
        bound=2.0**10,
        fused=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        plain=(1.5706787109375, 0.00011761486530303955, 9.920313459588215e-10, 6.223371969669989e-14),
        sine=(-0.16666653752326965, 0.00833214446902275, -0.0001951512531377375),
        cosine=(0.04166664555668831, -0.0013887312961742282, 2.443297125864774e-05),
    ),
    64: _Method(
        bound=2.0**18,
        fused=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
        plain=(1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32),
        sine=(
            -0.1666666666666663,
            0.00833333333332209,
            -0.0001984126982956611,
            2.75573136129508e-06,
            -2.5050746397795447e-08,
            1.5896148615437067e-10,
        ),
        cosine=(
            0.041666666666666595,
            -0.0013888888888873017,
            2.480158728882584e-05,
            -2.755731417162133e-07,
            2.087569977236987e-09,
            -1.135847983701628e-11,
        ),
    ),
}
_TWO_OVER_PI = 0.6366197723675814


def sin(traits: Traits, x: Number) -> Number:
    """sin(x) for x of any size; NaN for infinities and NaN; -0 at -0."""
    form = x.form
    method = _METHODS[form.bits]
    size = x.absolute()
    near = _less_multiple(traits, size, method)
    far = reduced_single(size) if form == F32 else reduced_double(traits, size)
    is_near = size.less(method.bound)
    quadrant = choose(is_near, near.quadrant, far.quadrant)
    rest = Pair(choose(is_near, near.rest.high, far.rest.high), choose(is_near, near.rest.low, far.rest.low))
    square = rest.high * rest.high
    is_odd = (quadrant & 1).differs(0)
    value = choose(is_odd, _cosine(traits, rest, square, method), _sine(traits, rest, square, method))
    sign = ((quadrant >> 1) << (form.bits - 1)) ^ (x.bits() & (1 << (form.bits - 1)))
    signed = (value.bits() ^ sign).reinterpreted(form)
    return choose(size.less(float("inf")), signed, float("nan"))


def _less_multiple(traits: Traits, size: Number, method: _Method) -> Angle:
    """size - multiple * pi/2, to about one and a half times the form's precision; meaningless beyond the bound."""
    multiple, quadrant = nearest_integer(size * _TWO_OVER_PI)
    first, *middle, last = method.fused if traits.has_fma else method.plain
    rest = Pair(multiply_add(traits, -multiple, first, size), literal(size.form, 0.0))
    for part in middle:
        product = _product(traits, multiple, part)
        difference = two_sum(rest.high, -product.high)
        rest = Pair(difference.high, rest.low + (difference.low - product.low))
    low = multiply_add(traits, -multiple, last, rest.low)
    # Where the leading parts cancel, what is left of the others is not small beside the difference.
    return Angle(quadrant, two_sum(rest.high, low))


def _product(traits: Traits, multiple: Number, part: float) -> Pair:
    constant = literal(multiple.form, part)
    if traits.has_fma:
        return two_product(traits, multiple, constant)
    return Pair(multiple * constant, literal(multiple.form, 0.0))


def _sine(traits: Traits, rest: Pair, square: Number, method: _Method) -> Number:
    """sin(high + low) = high + (high**3 * S(high**2) + low)."""
    cubic = rest.high * (square * horner(traits, square, method.sine))
    return rest.high + (cubic + rest.low)


def _cosine(traits: Traits, rest: Pair, square: Number, method: _Method) -> Number:
    """cos(high + low) = 1 - h + (high**4 * C(high**2) - high * low) with h = high**2 / 2; what rounding 1 - h lost is
    put back.
    """
    half = square * 0.5
    leading = 1.0 - half
    lost = (1.0 - leading) - half
    quartic = square * (square * horner(traits, square, method.cosine))
    return leading + (lost + (quartic - rest.high * rest.low))
