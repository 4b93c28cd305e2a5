"""Long division of polynomials: positions in an image whose sizes are sums, such as those of padding."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tensorkiln import expr
from tensorkiln.expr import Dim, Expr, Monomial

_MOST_STEPS: Final = 64
"""The most terms of a quotient."""
_REMEMBERED: Final = 1 << 14


@lru_cache(_REMEMBERED)
def divided(dividend: Dim, divisor: Dim) -> tuple[Dim, Dim]:
    """`(q, r)` with `dividend == q * divisor + r`, for a divisor of several terms, such as the width of a padded image.

    No term of the rest is a multiple of the first term of highest degree of the divisor, unless the quotient has more
    than 64 terms. The rest may be negative or too large: nothing is rounded.
    """
    assert isinstance(divisor, Expr), "a constant divides term by term"
    lead, factor = divisor.terms[0]
    quotient: Dim = 0
    rest = dividend
    for _ in range(_MOST_STEPS):
        part = next((part for term in _terms(rest) if (part := _part(*term, lead, factor)) != 0), 0)
        if part == 0:
            break
        quotient, rest = expr.add(quotient, part), expr.sub(rest, expr.mul(part, divisor))
    return quotient, rest


def _terms(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    """The terms, of highest degree first."""
    return dim.terms if isinstance(dim, Expr) else ()


def _part(monomial: Monomial, coefficient: int, lead: Monomial, factor: int) -> Dim:
    """The term divided by `factor * lead`; 0 if that does not divide it."""
    others = list(monomial)
    for atom in lead:
        if atom not in others:
            return 0
        others.remove(atom)
    if coefficient % factor:
        return 0
    return Expr(((tuple(others), coefficient // factor),)) if others else coefficient // factor
