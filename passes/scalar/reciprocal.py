"""Many divisions by one number: its reciprocal once, and for each a product that two fused operations correct.

With y = 1/s rounded and q = x*y rounded, q - (q*s - x)*y is x/s correctly rounded (P. Markstein, "Computation of
elementary functions on the IBM RISC System/6000 processor", 1990), where nothing on the way leaves the normal numbers.
A quotient whose dividend or which itself is so small that the excess q*s - x is not, is at most two units in the
last place off; one that close to overflow may be infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

from .number import Number, choose
from .polynomial import multiply_add
from .traits import Traits

_MOST_EXPONENT = 64
"""Of a divisor and of its reciprocal: far from where either is denormal or infinite."""


@dataclass(frozen=True, slots=True, eq=False)
class Reciprocal:
    """A divisor, and 1 divided by it."""

    divisor: Number
    inverse: Number

    @staticmethod
    def of(divisor: Number) -> Reciprocal:
        return Reciprocal(divisor, 1.0 / divisor)

    def is_exact(self) -> Number:
        """Whether the divisor is positive, and neither so small nor so large that quotients would not be right."""
        return self.divisor.at_least(2.0**-_MOST_EXPONENT) & (2.0**_MOST_EXPONENT - self.divisor).at_least(0.0)

    def quotient(self, traits: Traits, x: Number) -> Number:
        """x divided by the divisor, which `is_exact`.

        The excess is +0 where the product is the quotient, which then keeps its sign if it is 0; where that is infinite
        or NaN, what it is corrected to is NaN.
        """
        corrected = self.share(traits, x)
        return choose(corrected.is_nan(), x * self.inverse, corrected)

    def share(self, traits: Traits, x: Number) -> Number:
        """The same of an x that is finite."""
        product = x * self.inverse
        excess = multiply_add(traits, product, self.divisor, -x)
        return multiply_add(traits, -excess, self.inverse, product)
