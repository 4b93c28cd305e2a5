"""|x|**y of float64 by a logarithm of about 66 bits in pairs of float64.

Coefficients: the first three of 2 * atanh(s) / s / ln(2) in powers of s**2 are 2 / (k ln 2) as pairs, the rest is
minimax by Remez exchange in 500-bit arithmetic; error 2**-78.
"""

from __future__ import annotations

from .exact import Pair, quick_two_sum, two_product, two_sum
from .exp2 import DOUBLE, scaled, within_powers
from .form import F64
from .integers import nearest_integer
from .log2 import decomposed
from .number import Number, choose, literal
from .polynomial import horner, multiply_add
from .traits import Traits

_FIRST = (2.8853900817779268, 4.0710547481862066e-17)
_THIRD = (0.9617966939259756, 5.0577616648125907e-17)
_FIFTH = (0.5770780163555853, 5.2551030481378675e-17)
_REST = (
    0.41219858311113167,
    0.32059889797576396,
    0.2623081891468548,
    0.22195309684103354,
    0.19235829896558596,
    0.1697772569514433,
    0.15051301735904532,
    0.15791645039125699,
)
_LN2 = 0.6931471805599453


def magnitude_of_doubles(traits: Traits, x: Number, y: Number) -> Number:
    """|x|**y; meaningless where x or y is NaN, y is 0, or |x| is 1 and y infinite."""
    base, infinity = x.absolute(), float("inf")
    logarithm = _logarithm(traits, base)
    high = choose(base.equals(0.0), -infinity, choose(base.equals(infinity), infinity, logarithm.high))
    product = two_product(traits, y, high)
    bounded = within_powers(product.high)
    # The error of a product with a huge y may overflow; for such y the product is out of bounds, or 0 for |x| = 1.
    is_accurate = bounded.equals(product.high) & y.absolute().less(2.0**64)
    below = choose(is_accurate, multiply_add(traits, y, logarithm.low, product.low), 0.0)
    whole, power = nearest_integer(bounded)
    rest = quick_two_sum(bounded - whole, below)
    tail = multiply_add(traits, rest.high, horner(traits, rest.high, DOUBLE), rest.low * _LN2)
    return scaled(tail + 1.0, power)


def _logarithm(traits: Traits, base: Number) -> Pair:
    """log2 of a positive finite number: exponent + s * (c1 + z * (c3 + z * (c5 + z * rest))), z = s**2."""
    exponent, f = decomposed(base)
    s = _ratio(traits, f)
    z = _product(traits, s, s)
    rest = z.high * horner(traits, z.high, _REST)
    fifth = quick_two_sum(literal(F64, _FIFTH[0]), rest + _FIFTH[1])
    third = _sum(_THIRD, _product(traits, z, fifth))
    first = _sum(_FIRST, _product(traits, z, third))
    fraction = _product(traits, s, first)
    total = two_sum(exponent, fraction.high)
    return quick_two_sum(total.high, total.low + fraction.low)


def _product(traits: Traits, a: Pair, b: Pair) -> Pair:
    """a * b; the low part is not normalised: up to a few units in the last place of the high one."""
    exact = two_product(traits, a.high, b.high)
    return Pair(exact.high, multiply_add(traits, a.high, b.low, multiply_add(traits, a.low, b.high, exact.low)))


def _sum(constant: tuple[float, float], term: Pair) -> Pair:
    """constant + term for a larger constant; not normalised."""
    total = quick_two_sum(literal(F64, constant[0]), term.high)
    return Pair(total.high, total.low + (term.low + constant[1]))


def _ratio(traits: Traits, f: Number) -> Pair:
    """f / (2 + f) by a reciprocal, which also divides the remainder."""
    divisor = quick_two_sum(literal(F64, 2.0), f)
    reciprocal = 1.0 / divisor.high
    quotient = f * reciprocal
    product = two_product(traits, quotient, divisor.high)
    remainder = multiply_add(traits, -quotient, divisor.low, (f - product.high) - product.low)
    return Pair(quotient, remainder * reciprocal)
