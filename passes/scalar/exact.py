"""Sums and products without rounding error: the rounded result and its error.

Sources: T. J. Dekker, "A floating-point technique for extending the available precision", 1971; D. E. Knuth, TAOCP 2,
4.2.2. An operand that is not finite gives a NaN error term; callers must discard it where that matters.
"""

from __future__ import annotations

from typing import NamedTuple

from .number import Number
from .polynomial import multiply_add
from .traits import Traits


class Pair(NamedTuple):
    """An unevaluated sum; `low` is at most half a unit in the last place of `high`."""

    high: Number
    low: Number


def two_sum(a: Number, b: Number) -> Pair:
    """a + b exactly, of any magnitudes."""
    total = a + b
    b_part = total - a
    return Pair(total, (a - (total - b_part)) + (b - b_part))


def quick_two_sum(a: Number, b: Number) -> Pair:
    """a + b exactly, where |a| >= |b| or a is 0."""
    total = a + b
    return Pair(total, b - (total - a))


def two_product(traits: Traits, a: Number, b: Number) -> Pair:
    """a * b exactly, unless it underflows; without fused multiply-add also |a|, |b| < 2**995 (float64)."""
    product = a * b
    if traits.has_fma:
        return Pair(product, multiply_add(traits, a, b, -product))
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return Pair(product, error)


def _halves(x: Number) -> Pair:
    """Two numbers of half the significant bits each, whose products are exact (G. W. Veltkamp)."""
    scaled = x * float((1 << ((x.form.fraction + 2) // 2)) + 1)
    high = scaled - (scaled - x)
    return Pair(high, x - high)


def multiply_pairs(traits: Traits, a: Pair, b: Pair) -> Pair:
    """a * b to about twice the working precision."""
    product = two_product(traits, a.high, b.high)
    cross = multiply_add(traits, a.high, b.low, a.low * b.high)
    return quick_two_sum(product.high, product.low + cross)
