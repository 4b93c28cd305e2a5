"""Polynomials over the symbols and unknowns of a kernel: their parts, their division, their sign."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from passes.loops.index_space import split_multiple
from tensorkiln import expr
from tensorkiln.expr import Atom, Dim, Expr, Monomial

MAX_DIVISIONS = 64
"""Steps of a division of polynomials: one for each term of the quotient."""

Range = tuple[int, int]
"""The least and the greatest value of a symbol."""


def linear_in(dim: Dim, name: str) -> tuple[Dim, Dim] | None:
    """`(slope, rest)` with `dim == slope * name + rest`; None when it is not linear in `name`."""
    if isinstance(dim, int):
        return 0, dim
    found = {atom for monomial, _ in dim.terms for atom in monomial if name in atom.symbols}
    if not found:
        return 0, dim
    (atom, *others) = found
    return None if others or atom.key != name else linear_in_atom(dim, atom)


def linear_in_atom(dim: Expr, atom: Atom) -> tuple[Dim, Dim] | None:
    """`(slope, rest)` in terms of `atom`, which may stand inside of other atoms: these are taken as they are."""
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


def common_factor(dim: Dim, limit: int) -> int:
    """The greatest divisor of `limit` that divides every coefficient of `dim`; of all integers where `limit` is 0."""
    coefficients = [dim] if isinstance(dim, int) else [count for _, count in dim.terms]
    return gcd(limit, *coefficients)


def value_at(dim: Dim, values: Mapping[str, int]) -> int:
    """`dim` for these values of its symbols; 0 where it has none, or one that 64 bits do not hold."""
    try:
        return expr.evaluate(dim, values)
    except expr.ExprError:
        return 0


def long_division(dividend: Dim, divisor: Dim) -> tuple[Dim, Dim]:
    """`(q, r)` with `dividend == q * divisor + r`, for a divisor of several terms as polynomials are divided."""
    if isinstance(divisor, int) or len(divisor.terms) == 1:
        return split_multiple(dividend, divisor)
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
    """How many atoms a term multiplies."""
    return len(term[0])


def _divided(term: tuple[Monomial, int], lead: Monomial, factor: int) -> Dim:
    """The term divided by `factor` times `lead`, 0 where that does not go."""
    others, coefficient = list(term[0]), term[1]
    if coefficient % factor or any(others.count(atom) < lead.count(atom) for atom in lead):
        return 0
    for atom in lead:
        others.remove(atom)
    return Expr(((tuple(others), coefficient // factor),)) if others else coefficient // factor


def is_sum_of_products(dim: Dim, ranges: Mapping[str, Range]) -> bool:
    """Whether `dim` has no negative term when every atom is written as its least value and what is above that.

    So m * n - 9 * n is not negative for m from 9 on, though its terms by themselves do not say so.
    """
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
