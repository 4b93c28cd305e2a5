"""Polynomials over symbols and unknowns: linear parts, division, sign."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import gcd
from typing import Final

from tensorkiln import expr
from tensorkiln.expr import Atom, Dim, Expr, Monomial

MAX_DIVISIONS = 64
"""The most steps of a polynomial division, one per term of the quotient."""

REMEMBERED: Final = 1 << 14
"""How many results of a function are kept: proofs of one kernel ask the same again and again."""

Range = tuple[int, int]
"""The least and the greatest value of a symbol."""


@lru_cache(REMEMBERED)
def linear_in(dim: Dim, name: str) -> tuple[Dim, Dim] | None:
    """`(slope, rest)` with `dim == slope * name + rest`; None when it is not linear in `name`."""
    if isinstance(dim, int):
        return 0, dim
    found = {atom for monomial, _ in dim.terms for atom in monomial if name in atom.symbols}
    if not found:
        return 0, dim
    (atom, *others) = found
    return None if others or atom.key != name else linear_in_atom(dim, atom)


@lru_cache(REMEMBERED)
def linear_in_atom(dim: Expr, atom: Atom) -> tuple[Dim, Dim] | None:
    """`(slope, rest)` with `dim == slope * atom + rest`; occurrences inside other atoms are left as they are."""
    slope: Dim = 0
    rest: Dim = 0
    for monomial, coefficient in dim.terms:
        mine = [other for other in monomial if other == atom]
        others = tuple(other for other in monomial if other != atom)
        if len(mine) > 1:
            return None
        term: Dim = Expr(((others, coefficient),)) if others else coefficient
        if mine:
            slope = expr.add(slope, term)
        else:
            rest = expr.add(rest, term)
    return slope, rest


def without_constant(dim: Expr) -> tuple[tuple[tuple[Monomial, int], ...], int]:
    """The terms of `dim` but its constant, and that, which is the last of the terms."""
    *others, (monomial, constant) = dim.terms
    return (dim.terms, 0) if monomial else (tuple(others), constant)


def common_factor(dim: Dim, limit: int) -> int:
    """The greatest common divisor of `limit` and all coefficients of `dim`; `limit` 0 means no limit."""
    coefficients = [dim] if isinstance(dim, int) else [count for _, count in dim.terms]
    return gcd(limit, *coefficients)


class Sample:
    """Values of symbols, with those of the atoms over them, which many polynomials share."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self._values = values
        self._atoms: dict[Atom, int | None] = {}

    def __getitem__(self, dim: Dim) -> int:
        """`dim` at these values; 0 if a division by zero or over 64 bits is in it."""
        if isinstance(dim, int):
            return dim
        total = 0
        for monomial, coefficient in dim.terms:
            for atom in monomial:
                factor = self._atom(atom)
                if factor is None:
                    return 0
                coefficient *= factor
            total += coefficient
        return total

    def _atom(self, atom: Atom) -> int | None:
        if atom not in self._atoms:
            try:
                self._atoms[atom] = expr.evaluate(Expr((((atom,), 1),)), self._values)
            except expr.ExprError:
                self._atoms[atom] = None
        return self._atoms[atom]


@lru_cache(REMEMBERED)
def long_division(dividend: Dim, divisor: Dim) -> tuple[Dim, Dim]:
    """`(q, r)` with `dividend == q * divisor + r`, by polynomial long division if the divisor has several terms."""
    if isinstance(divisor, int) or len(divisor.terms) == 1:
        return expr.split_multiple(dividend, divisor)
    lead, factor = max(divisor.terms, key=degree)
    whole: Dim = 0
    rest = dividend
    for _ in range(MAX_DIVISIONS):
        terms = rest.terms if isinstance(rest, Expr) else ()
        found = (
            part for term in sorted(terms, key=degree, reverse=True) if (part := _divided(term, lead, factor)) != 0
        )
        part = next(found, 0)
        whole, rest = expr.add(whole, part), expr.sub(rest, expr.mul(part, divisor))
        if part == 0:
            break
    return whole, rest


def degree(term: tuple[Monomial, int]) -> int:
    """The number of factors of a term."""
    return len(term[0])


def _divided(term: tuple[Monomial, int], lead: Monomial, factor: int) -> Dim:
    """The term divided by `factor * lead`; 0 if that does not divide it."""
    others, coefficient = list(term[0]), term[1]
    if coefficient % factor or any(others.count(atom) < lead.count(atom) for atom in lead):
        return 0
    for atom in lead:
        others.remove(atom)
    return Expr(((tuple(others), coefficient // factor),)) if others else coefficient // factor


def is_sum_of_products(dim: Dim, ranges: Mapping[str, Range]) -> bool:
    """Whether `dim` has no negative term after each atom is written as its least value plus an excess.

    Proves that m * n - 9 * n is nonnegative for m >= 9, which its terms alone do not.
    """
    return _is_sum_of_products(dim, tuple(ranges.items()))


@lru_cache(REMEMBERED)
def _is_sum_of_products(dim: Dim, known: tuple[tuple[str, Range], ...]) -> bool:
    ranges = dict(known)
    above: dict[str, Range] = {}
    shifted: Dim = 0
    for monomial, coefficient in dim.terms if isinstance(dim, Expr) else (((), dim),):
        term: Dim = coefficient
        for atom in monomial:
            low, high = expr.bounds(Expr((((atom,), 1),)), ranges)
            above[atom.key] = 0, high - low
            term = expr.mul(term, expr.add(low, expr.symbol(atom.key)))
        shifted = expr.add(shifted, term)
    if isinstance(shifted, int):
        return shifted >= 0
    return all(
        expr.bounds(Expr(((monomial, coefficient),)) if monomial else coefficient, above)[0] >= 0
        for monomial, coefficient in shifted.terms
    )
