"""Many divisions by one number: one reciprocal, then a product per division, corrected by two fused operations.

With y = 1/s rounded and q = x*y rounded, q - (q*s - x)*y is x/s correctly rounded (P. Markstein, "Computation of
elementary functions on the IBM RISC System/6000 processor", 1990), if no intermediate result leaves the normal numbers.
If the dividend or quotient is so small that the excess q*s - x is not normal, the quotient is at most two units in the
last place off; a quotient close to overflow may become infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

from .number import Number, choose
from .polynomial import multiply_add
from .traits import Traits

_MOST_EXPONENT = 64
"""Largest exponent of a divisor and of its reciprocal: far from denormals and infinity."""


@dataclass(frozen=True, slots=True, eq=False)
class Reciprocal:
    """A divisor and its reciprocal."""

    divisor: Number
    inverse: Number

    @staticmethod
    def of(divisor: Number) -> Reciprocal:
        return Reciprocal(divisor, 1.0 / divisor)

    def is_exact(self) -> Number:
        """Whether the divisor is positive, and neither too small nor too large for exact quotients."""
        return self.divisor.at_least(2.0**-_MOST_EXPONENT) & (2.0**_MOST_EXPONENT - self.divisor).at_least(0.0)

    def quotient(self, traits: Traits, x: Number) -> Number:
        """x divided by the divisor, which must satisfy `is_exact`.

        If the product is already the quotient, the excess is +0, which preserves the sign of a zero. If the product is
        infinite or NaN, the corrected value is NaN, and the product is returned.
        """
        corrected = self.share(traits, x)
        return choose(corrected.is_nan(), x * self.inverse, corrected)

    def share(self, traits: Traits, x: Number) -> Number:
        """The same for a finite x."""
        product = x * self.inverse
        excess = multiply_add(traits, product, self.divisor, -x)
        return multiply_add(traits, -excess, self.inverse, product)
