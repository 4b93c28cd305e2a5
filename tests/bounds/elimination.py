"""Proofs that a polynomial of integers is nonnegative, given known facts.

Unknowns are eliminated, the latest first. If a polynomial is linear in an unknown, substituting a bound for the
unknown, or subtracting a multiple of a nonnegative fact, gives a lower bound without it. The last lower bound has only
symbols of the graph, whose ranges are numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import inf
from typing import Literal

from tensorkiln import expr
from tensorkiln.expr import Dim, Expr

from .facts import Facts, tightest
from .polynomials import Sample, is_sum_of_products, linear_in, linear_in_atom, long_division
from .scope import Scope

MAX_STEPS = 80
"""The most eliminations of one proof, since a failing proof would try every combination of bounds."""
MAX_ENDS = 12
"""The most eliminations tried for the bounds of one polynomial."""
MAX_BOUNDS = 4
"""The most upper bounds kept for one polynomial; further ones are usually duplicates."""

Which = Literal["exact", "partial", "later"]


def holds(facts: Facts, target: Dim, scope: Scope, steps: int = MAX_STEPS) -> bool:
    """Whether `target >= 0` is proven from the facts within `steps` eliminations."""
    if not scope.is_reached or facts.interval(target)[0] >= 0:
        return True
    try:
        return _Elimination(facts, scope, steps, is_goal=True).holds(target)
    except expr.ExprError:
        # The product has more factors than an expression may have.
        return False


def maxima(facts: Facts, dim: Dim, scope: Scope) -> tuple[Dim, ...]:
    """Upper bounds of `dim`, as polynomials over the graph's symbols; may be empty."""
    return _maxima(facts, dim, scope)[:MAX_BOUNDS]


def quotients(facts: Facts, dividend: Dim, divisor: Dim, scope: Scope) -> list[Dim]:
    """Upper bounds of `dividend // divisor` for a positive divisor."""
    most = _maxima(facts, dividend, scope)
    if expr.free_symbols(divisor).isdisjoint(facts.unknowns):
        most = tightest((_quotient(facts, bound, divisor, scope) for bound in most), min)
    return list(most[:MAX_BOUNDS])


def _maxima(facts: Facts, dim: Dim, scope: Scope) -> tuple[Dim, ...]:
    most = facts.interval(dim)[1]
    try:
        ends = islice(_Elimination(facts, scope, MAX_STEPS).ends(expr.neg(dim)), MAX_ENDS)
        found = [expr.neg(end) for end in ends]
    except expr.ExprError:
        found = []
    return tightest(found if most == inf else [int(most), *found], min)


def _quotient(facts: Facts, dividend: Dim, divisor: Dim, scope: Scope) -> Dim:
    """`dividend // divisor`, simplified to a polynomial if possible: (m * n - 1) // n is m - 1 for a positive n."""
    whole, rest = long_division(dividend, divisor)
    for below in (0, 1):
        left = expr.add(rest, expr.mul(below, divisor))
        if all(holds(facts, dim, scope) for dim in (left, expr.sub(expr.sub(divisor, 1), left))):
            return expr.sub(whole, below)
    return expr.floordiv(dividend, divisor)


class _Elimination:
    def __init__(self, facts: Facts, scope: Scope, steps: int, *, is_goal: bool = False) -> None:
        self.facts, self.unknowns, self.scope, self.is_goal = facts, facts.unknowns, scope, is_goal
        self.steps, self.is_detour = steps, False
        self.failed: set[Dim] = set()
        self.ended: dict[Dim, bool] = {}
        self._samples: Sequence[Sample] | None = None

    def holds(self, target: Dim) -> bool:
        return any(self._follows(end) for end in self.ends(target))

    def _follows(self, end: Dim) -> bool:
        """Whether `end`, of symbols only, is nonnegative, directly or after subtracting known facts."""
        if end not in self.ended:
            self.ended[end] = self.scope.is_nonnegative(end) or (
                not self._is_refuted(end)
                and any(self._is_nonnegative(less) for less in (end, *self._less_what_is_given(end)))
            )
        return self.ended[end]

    def _is_refuted(self, end: Dim) -> bool:
        """Whether `end` is negative for sample values of the symbols that are possible here."""
        if self._samples is None:
            self._samples = self.facts.samples(self.scope)
        return any(sample[end] < 0 for sample in self._samples)

    def _less_what_is_given(self, end: Dim) -> Iterator[Dim]:
        """`end - k * fact` for facts of symbols only, where `k >= 0` is 1 or removes a symbol."""
        for fact in self.scope.given:
            names = expr.free_symbols(fact)
            if not names.isdisjoint(self.unknowns):
                continue
            yield expr.sub(end, fact)
            times, rest = long_division(end, fact)
            if times != 0 and self._has_sign(times, 1):
                yield rest
            times, rest = long_division(fact, end)
            if isinstance(times, int) and isinstance(rest, int) and rest < times:
                # `times * end` is above `-times`, so the integer `end` is above -1.
                yield 0
            for name in sorted(names):
                mine, theirs = linear_in(end, name), linear_in(fact, name)
                if mine is None or theirs is None or not isinstance(theirs[0], int) or theirs[0] == 0:
                    continue
                times = expr.floordiv(mine[0], theirs[0])
                if expr.mul(times, theirs[0]) == mine[0] and self._has_sign(times, 1):
                    yield expr.sub(end, expr.mul(times, fact))

    def _is_nonnegative(self, end: Dim) -> bool:
        return self.scope.is_nonnegative(end) or is_sum_of_products(end, self.scope.ranges)

    def ends(self, target: Dim) -> Iterator[Dim]:
        """Lower bounds of `target`, as polynomials over the graph's symbols, one per choice of bounds."""
        if isinstance(target, int):
            yield target
            return
        if target in self.failed:
            return
        self.failed.add(target)
        self.steps -= 1
        if self.steps < 0:
            return
        if self.is_goal:
            least, most = self.facts.interval(target)
            if least >= 0 or most < 0:
                yield 0 if least >= 0 else -1
                return
        name = self.facts.latest(target)
        if name is None:
            yield target
            if self.is_goal:
                yield from self._by_quotients(target)
                yield from self._by_extremes(target)
            return
        form = linear_in(target, name)
        if form is None:
            return
        slope, rest = form
        unknown = self.unknowns[name]
        if unknown.definition is not None:
            whole = expr.add(rest, expr.mul(slope, unknown.definition))
            if expr.free_symbols(target) - expr.free_symbols(whole) - {name}:
                # Only if this also cancels the quotient.
                yield from self.ends(whole)
        # Facts of this scope are tighter than the unknowns' general bounds.
        yield from self._by_facts(target, name, slope, "exact")
        sign = next((sign for sign in (1, -1) if self._has_sign(slope, sign)), 0)
        for bound in (unknown.uppers, (), unknown.lowers)[sign + 1]:
            yield from self.ends(expr.add(rest, expr.mul(slope, bound)))
        yield from self._by_facts(target, name, slope, "partial")
        if sign < 0:
            for bound in self._of_dividend(name):
                yield from self.ends(expr.add(rest, expr.mul(slope, bound)))
        if not self.is_detour:
            self.is_detour = True
            yield from self._by_facts(target, name, slope, "later")
            self.is_detour = False

    def _has_sign(self, slope: Dim, sign: int) -> bool:
        wanted = slope if sign > 0 else expr.neg(slope)
        if isinstance(wanted, int):
            return wanted >= 0
        if expr.free_symbols(wanted).isdisjoint(self.unknowns):
            return self._follows(wanted)
        return holds(self.facts, wanted, self.scope)

    def _by_facts(self, target: Dim, name: str, slope: Dim, which: Which) -> Iterator[Dim]:
        """Eliminate `name` by facts of the scope: `target` is at least `target - k * fact` for every `k >= 0`.

        A fact is `exact` if this removes `name`, `partial` if some of it is left, and `later` if it replaces `name` by
        a later unknown.
        """
        for fact in self.scope.given:
            latest = None if isinstance(fact, int) else self.facts.latest(fact)
            if latest is None or (latest != name) != (which == "later"):
                continue
            form = linear_in(fact, name)
            if form is None or form[0] == 0:
                continue
            times, left = (1, 0) if form[0] == slope else long_division(slope, form[0])
            if times == 0 or (which != "later" and (left == 0) != (which == "exact")):
                continue
            if self._has_sign(times, 1):
                yield from self.ends(expr.sub(target, expr.mul(times, fact)))

    def _of_dividend(self, name: str) -> Sequence[Dim]:
        """Upper bounds of a quotient by facts about its dividend that were not known where it was computed."""
        if name not in self.facts.divided:
            return ()
        key = name, self.scope.given
        if key not in self.facts.quotients:
            self.facts.quotients[key] = ()  # While they are looked for.
            self.facts.quotients[key] = quotients(self.facts, *self.facts.divided[name], self.scope)
        return self.facts.quotients[key]

    def _by_quotients(self, target: Expr) -> Iterator[Dim]:
        """Eliminate a quotient q = a // b of symbols by a - b < b * q <= a."""
        for atom in dict.fromkeys(atom for monomial, _ in target.terms for atom in monomial if atom.op == "floordiv"):
            form = linear_in_atom(target, atom)
            dividend, divisor = atom.args
            if form is None or not isinstance(divisor, int) or divisor <= 0:
                continue
            times = expr.floordiv(form[0], divisor)
            rest = form[1]
            if expr.mul(times, divisor) != form[0]:
                if not self.is_goal:
                    continue
                # `divisor * target > -divisor` suffices, since `target` is an integer.
                times, rest = form[0], expr.add(expr.mul(rest, divisor), divisor - 1)
            if self._has_sign(times, 1):
                yield from self.ends(expr.add(rest, expr.mul(times, expr.sub(dividend, divisor - 1))))
            elif self._has_sign(times, -1):
                yield from self.ends(expr.add(rest, expr.mul(times, dividend)))

    def _by_extremes(self, target: Expr) -> Iterator[Dim]:
        """Eliminate a subtracted minimum or an added maximum: substitute each of its arguments."""
        for atom in dict.fromkeys(atom for monomial, _ in target.terms for atom in monomial):
            if atom.op not in ("min", "max"):
                continue
            form = linear_in_atom(target, atom)
            if form is not None and self._has_sign(form[0], 1 if atom.op == "max" else -1):
                for dim in atom.args:
                    yield from self.ends(expr.add(form[1], expr.mul(form[0], dim)))
