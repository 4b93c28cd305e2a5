"""Many divisions by one number: its reciprocal once, and for each a product that two fused operations correct.

With y = 1/s rounded and q = x*y rounded, q + (x - q*s)*y is x/s correctly rounded (P. Markstein, "Computation of
elementary functions on the IBM RISC System/6000 processor", 1990), where nothing on the way leaves the normal numbers.
A quotient whose dividend or which itself is so small that the remainder x - q*s is not, is at most two units in the
last place off; one that close to overflow may be infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialect.mlir import arith

from .number import Number, choose
from .polynomial import multiply_add
from .traits import Traits

_MOST_EXPONENT = 64
"""Of the magnitude of a divisor, and of its reciprocal's: far from where either is denormal or infinite."""


@dataclass(frozen=True, slots=True, eq=False)
class Reciprocal:
    """A divisor, and 1 divided by it."""

    divisor: Number
    inverse: Number

    @staticmethod
    def of(divisor: Number) -> Reciprocal:
        return Reciprocal(divisor, 1.0 / divisor)

    def is_exact(self) -> Number:
        """Whether the divisor is neither NaN nor so small or large that quotients would not be right."""
        size = self.divisor.absolute()
        return size.at_least(2.0**-_MOST_EXPONENT) & (2.0**_MOST_EXPONENT - size).at_least(0.0)

    def quotient(self, traits: Traits, x: Number) -> Number:
        """x divided by the divisor, which `is_exact`.

        Where nothing remains the product is the quotient, with its sign if it is 0. Where it is infinite or NaN the
        remainder is NaN.
        """
        product = x * self.inverse
        rest = multiply_add(traits, -product, self.divisor, x)
        corrected = multiply_add(traits, rest, self.inverse, product)
        is_done = Number(arith.cmpf(arith.CmpFPredicate.UEQ, rest.value, rest.literal(0.0).value), x.form)
        return choose(is_done, product, corrected)
