"""What is known of the integers of a kernel, and whether it implies that one of them is not negative.

Every integer that the analysis meets is a polynomial (a `Dim`) over the graph's symbols and over *unknowns*: loop
indices, quotients, minima, values read at run time. An unknown is introduced with what bounds it from below and above,
in terms of what was introduced before it. So it can be eliminated: where a polynomial is linear in its latest unknown,
it is at least what it becomes when a bound takes the place of that unknown. What is left in the end has the symbols of
the graph alone, whose ranges are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import gcd, inf
from typing import Literal

from tensorkiln import expr
from tensorkiln.expr import Atom, Dim, Expr

from ..to_linalg.index_space import split_multiple

MAX_STEPS = 80
"""Eliminations of one proof: one that fails would try every combination of bounds."""
ACCESS_STEPS = 160
"""Of the proof that an access is within its memory, which seldom fails."""
MAX_ENDS = 12
"""Ways to eliminate that are tried for the bounds of one polynomial."""
MAX_DIVISIONS = 64
"""Steps of a division of polynomials: one for each term of the quotient."""
MAX_BOUNDS = 4
"""Upper bounds of one polynomial that are kept: more are the same bound by other ways."""

SAMPLES = (0, 1, 2, 5, 40)
"""What is tried of each symbol, in addition to its least value."""
MAX_SAMPLES = 125

UNKNOWN = "?"
"""What the names of unknowns begin with, and that of no symbol does."""
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds at a place of a kernel: `given` are not negative, `ranges` bound the symbols of the graph.

    A place that is never reached has a negative number among what is given: there, anything holds.
    """

    ranges: Mapping[str, Range]
    given: tuple[Dim, ...] = ()
    is_reached: bool = True

    def where(self, facts: Iterable[Dim]) -> Scope:
        """The scope in which `facts` are not negative as well."""
        ranges = dict(self.ranges)
        given = list(self.given)
        is_reached = self.is_reached
        for fact in facts:
            if isinstance(fact, int):
                is_reached = is_reached and fact >= 0
                continue
            if fact in given:
                continue
            sums = (expr.add(fact, other) for other in given)
            is_reached = is_reached and not any(isinstance(sum_, int) and sum_ < 0 for sum_ in sums)
            given.append(fact)
            _narrow(fact, ranges)
            positive = tuple(_positive_symbols(fact))
            # A product of two negative numbers is positive as well.
            if all(name in ranges and ranges[name][0] >= 0 for name in positive):
                ranges |= {name: (max(ranges[name][0], 1), ranges[name][1]) for name in positive}
        is_reached = is_reached and all(low <= high for low, high in ranges.values())
        return replace(self, ranges=ranges, given=tuple(given), is_reached=is_reached)


def _narrow(fact: Expr, ranges: dict[str, Range]) -> None:
    """Narrow the range of the symbol that `fact`, which is not negative, compares with a number."""
    *constant, (monomial, coefficient) = sorted(fact.terms, key=_degree)
    names = {atom.key for atom in monomial}
    if len(constant) > 1 or len(names) != 1 or (constant and constant[0][0]):
        return
    number = constant[0][1] if constant else 0
    (name,) = names
    if name not in ranges:
        return
    low, high = ranges[name]
    if coefficient < 0 and (len(monomial) == 1 or (number < -coefficient and low >= 0)):
        # Of a power this is known where it is 0.
        ranges[name] = (low, min(high, number // -coefficient))
    elif coefficient > 0 and len(monomial) == 1:
        ranges[name] = (max(low, -(number // coefficient)), high)


def _positive_symbols(fact: Expr) -> Iterator[str]:
    """The symbols that are positive if `fact`, a product less a positive number, is not negative."""
    *rest, last = sorted(fact.terms, key=lambda term: -len(term[0]))
    if len(rest) == 1 and not last[0] and last[1] < 0 and rest[0][1] > 0:
        yield from (atom.key for atom in rest[0][0] if atom.op == "symbol")


Which = Literal["exact", "partial", "later"]
Interval = tuple[float, float]
"""Numbers that an integer is between; infinite where it is not bounded."""


@dataclass(slots=True)
class Unknown:
    """An integer, and what it is at least and at most, in terms of symbols and of earlier unknowns.

    What is left of a division has a `definition` as well, in terms of the quotient.
    """

    rank: int
    lowers: tuple[Dim, ...]
    uppers: tuple[Dim, ...]
    interval: Interval
    definition: Dim | None = None


@dataclass(slots=True)
class Facts:
    """The unknowns of a kernel of a graph whose symbols have these `ranges`."""

    ranges: Mapping[str, Range]
    unknowns: dict[str, Unknown] = field(default_factory=dict[str, Unknown])
    _samples: dict[object, list[dict[str, int]]] = field(default_factory=dict[object, list[dict[str, int]]])

    def new(self, lowers: Iterable[Dim] = (), uppers: Iterable[Dim] = (), definition: Dim | None = None) -> Dim:
        """A new unknown that is not below any of `lowers` nor above any of `uppers`, and is what `definition` is."""
        name = f"{UNKNOWN}{len(self.unknowns)}"
        below, above = _tightest(lowers, max), _tightest(uppers, min)
        least = max((self.interval(bound)[0] for bound in below), default=-inf)
        most = min((self.interval(bound)[1] for bound in above), default=inf)
        self.unknowns[name] = Unknown(len(self.unknowns), below, above, (least, most), definition)
        return expr.symbol(name)

    def samples(self, scope: Scope) -> Sequence[Mapping[str, int]]:
        """Values of the symbols for which all that is given of symbols alone holds: some of them."""
        known = tuple(fact for fact in scope.given if expr.free_symbols(fact).isdisjoint(self.unknowns))
        key = known, tuple(scope.ranges.items())
        if key not in self._samples:
            few = [dict.fromkeys(min(low + more, high) for more in SAMPLES) for low, high in scope.ranges.values()]
            found = (dict(zip(scope.ranges, values, strict=True)) for values in islice(product(*few), MAX_SAMPLES))
            self._samples[key] = [one for one in found if all(value_at(fact, one) >= 0 for fact in known)]
        return self._samples[key]

    def of_symbols(self, fact: Dim) -> Dim | None:
        """What `fact` does not exceed, in terms of symbols: each of its unknowns at a bound; None where one has none."""
        most: Dim = 0
        for monomial, coefficient in fact.terms if isinstance(fact, Expr) else ():
            term: Dim = Expr(((monomial, coefficient),)) if monomial else coefficient
            if not expr.free_symbols(term).isdisjoint(self.unknowns):
                known = self.unknowns.get(monomial[0].key) if len(monomial) == 1 else None
                bounds = () if known is None else known.uppers if coefficient > 0 else known.lowers
                bound = next((b for b in bounds if expr.free_symbols(b).isdisjoint(self.unknowns)), None)
                if bound is None:
                    return None
                term = expr.mul(coefficient, bound)
            most = expr.add(most, term)
        return most

    def interval(self, dim: Dim) -> Interval:
        """Numbers that `dim` is between, each unknown and symbol being looked at by itself."""
        if isinstance(dim, int):
            return dim, dim
        low = high = 0.0
        for monomial, coefficient in dim.terms:
            least: float = coefficient
            most: float = coefficient
            for atom in monomial:
                left, right = self._interval_of(atom)
                corners = [_times(a, b) for a in (least, most) for b in (left, right)]
                least, most = min(corners), max(corners)
            low, high = low + least, high + most
        return low, high

    def _interval_of(self, atom: Atom) -> Interval:
        known = self.unknowns.get(atom.key)
        if known is not None:
            return known.interval
        if atom.symbols <= self.ranges.keys():
            return expr.bounds(Expr((((atom,), 1),)), self.ranges)
        return -inf, inf

    def quotients(self, dividend: Dim, divisor: Dim, scope: Scope) -> list[Dim]:
        """What `dividend // divisor` does not exceed, the divisor being positive."""
        most = self._maxima(dividend, scope)
        if expr.free_symbols(divisor).isdisjoint(self.unknowns):
            most = _tightest((_quotient(bound, divisor, scope) for bound in most), min)
        return list(most[:MAX_BOUNDS])

    def holds(self, target: Dim, scope: Scope, steps: int = MAX_STEPS) -> bool:
        """Whether `target >= 0` follows from what is known, and is found in so many steps."""
        if not scope.is_reached or self.interval(target)[0] >= 0:
            return True
        return _Proof(self, scope, steps, is_goal=True).holds(target)

    def maxima(self, dim: Dim, scope: Scope) -> tuple[Dim, ...]:
        """Polynomials over the symbols of the graph that `dim` does not exceed: none where it is not known."""
        return self._maxima(dim, scope)[:MAX_BOUNDS]

    def _maxima(self, dim: Dim, scope: Scope) -> tuple[Dim, ...]:
        most = self.interval(dim)[1]
        found = [expr.neg(end) for end in islice(_Proof(self, scope, MAX_STEPS).ends(expr.neg(dim)), MAX_ENDS)]
        return _tightest(found if most == inf else [int(most), *found], min)


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
    lead, factor = max(divisor.terms, key=_degree)
    whole: Dim = 0
    rest = dividend
    for _ in range(MAX_DIVISIONS):
        terms = rest.terms if isinstance(rest, Expr) else ()
        found = (
            part for term in sorted(terms, key=_degree, reverse=True) if (part := _divided(term, lead, factor)) != 0
        )
        part = next(found, 0)
        whole, rest = expr.add(whole, part), expr.sub(rest, expr.mul(part, divisor))
        if part == 0:
            break
    return whole, rest


def _degree(term: tuple[tuple[Atom, ...], int]) -> int:
    return len(term[0])


def _divided(term: tuple[tuple[Atom, ...], int], lead: tuple[Atom, ...], factor: int) -> Dim:
    """The term divided by `factor` times `lead`, 0 where that does not go."""
    others, coefficient = list(term[0]), term[1]
    if coefficient % factor or any(others.count(atom) < lead.count(atom) for atom in lead):
        return 0
    for atom in lead:
        others.remove(atom)
    return Expr(((tuple(others), coefficient // factor),)) if others else coefficient // factor


_names = expr.free_symbols


def _tightest(bounds: Iterable[Dim], best: Callable[[Iterable[int]], int]) -> tuple[Dim, ...]:
    """The bounds without repetitions, of several numbers the `best` alone, those of the fewest names first."""
    unique = dict.fromkeys(bounds)
    numbers = [bound for bound in unique if isinstance(bound, int)]
    others = sorted((bound for bound in unique if not isinstance(bound, int)), key=_size)
    return (*([best(numbers)] if numbers else []), *others)


def _size(bound: Expr) -> tuple[int, int, int]:
    unknowns = sum(name.startswith(UNKNOWN) for name in expr.free_symbols(bound))
    return unknowns, expr.depth(bound), len(bound.terms)


def _times(left: float, right: float) -> float:
    """A product in which 0 is stronger than what is not bounded."""
    return 0 if left == 0 or right == 0 else left * right


def _quotient(dividend: Dim, divisor: Dim, scope: Scope) -> Dim:
    """`dividend // divisor` as a polynomial where it is one: (m * n - 1) // n is m - 1 for a positive n."""
    whole, rest = long_division(dividend, divisor)
    for below in (0, 1):
        left = expr.add(rest, expr.mul(below, divisor))
        if expr.is_nonnegative(left, scope.ranges) and expr.is_nonnegative(
            expr.sub(expr.sub(divisor, 1), left), scope.ranges
        ):
            return expr.sub(whole, below)
    return expr.floordiv(dividend, divisor)


def _is_sum_of_products(dim: Dim, ranges: Mapping[str, Range]) -> bool:
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


class _Proof:
    def __init__(self, facts: Facts, scope: Scope, steps: int, *, is_goal: bool = False) -> None:
        self.facts, self.unknowns, self.scope, self.is_goal = facts, facts.unknowns, scope, is_goal
        self.steps, self.is_detour = steps, False
        self.failed: set[Dim] = set()
        self.ended: dict[Dim, bool] = {}
        self._samples: Sequence[Mapping[str, int]] | None = None

    def holds(self, target: Dim) -> bool:
        return any(self._follows(end) for end in self.ends(target))

    def _follows(self, end: Dim) -> bool:
        """Whether `end`, of symbols only, is not negative, or not less than something that is not."""
        if end not in self.ended:
            self.ended[end] = expr.is_nonnegative(end, self.scope.ranges) or (
                not self._is_refuted(end)
                and any(self._is_nonnegative(less) for less in (end, *self._less_what_is_given(end)))
            )
        return self.ended[end]

    def _is_refuted(self, end: Dim) -> bool:
        """Whether `end` is negative for some values of the symbols that may come here."""
        if self._samples is None:
            self._samples = self.facts.samples(self.scope)
        return any(value_at(end, sample) < 0 for sample in self._samples)

    def _less_what_is_given(self, end: Dim) -> Iterator[Dim]:
        """`end - k * fact` for facts of symbols, with `k >= 0` that removes a symbol, or 1."""
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
                # A multiple of `end` is above -times.
                yield 0
            for name in sorted(names):
                mine, theirs = linear_in(end, name), linear_in(fact, name)
                if mine is None or theirs is None or not isinstance(theirs[0], int) or theirs[0] == 0:
                    continue
                times = expr.floordiv(mine[0], theirs[0])
                if expr.mul(times, theirs[0]) == mine[0] and self._has_sign(times, 1):
                    yield expr.sub(end, expr.mul(times, fact))

    def _is_nonnegative(self, end: Dim) -> bool:
        return expr.is_nonnegative(end, self.scope.ranges) or _is_sum_of_products(end, self.scope.ranges)

    def ends(self, target: Dim) -> Iterator[Dim]:
        """What `target` is at least: polynomials over the symbols of the graph, one for each choice of bounds."""
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
        name = self._latest(target)
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
            if _names(target) - _names(whole) - {name}:
                # The quotient is gone as well.
                yield from self.ends(whole)
        for sign in (1, -1):
            if self._has_sign(slope, sign):
                # What is given at this place says more than what is known everywhere.
                yield from self._by_facts(target, name, slope, "exact")
                for bound in unknown.lowers if sign > 0 else unknown.uppers:
                    yield from self.ends(expr.add(rest, expr.mul(slope, bound)))
                yield from self._by_facts(target, name, slope, "partial")
                if not self.is_detour:
                    self.is_detour = True
                    yield from self._by_facts(target, name, slope, "later")
                    self.is_detour = False
                return

    def _latest(self, target: Expr) -> str | None:
        names = _names(target) & self.unknowns.keys()
        return max(names, key=lambda name: self.unknowns[name].rank, default=None)

    def _has_sign(self, slope: Dim, sign: int) -> bool:
        wanted = slope if sign > 0 else expr.neg(slope)
        if isinstance(wanted, int):
            return wanted >= 0
        if expr.free_symbols(wanted).isdisjoint(self.unknowns):
            return self._follows(wanted)
        return self.facts.holds(wanted, self.scope)

    def _by_facts(self, target: Dim, name: str, slope: Dim, which: Which) -> Iterator[Dim]:
        """Eliminate `name` by what is given here: `target` is at least `target - k * fact` for every `k >= 0`.

        A fact is `exact` where nothing of `name` is left, `partial` where something is, and `later` where it has a later
        unknown, which takes the place of `name`.
        """
        for fact in self.scope.given:
            latest = None if isinstance(fact, int) else self._latest(fact)
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

    def _by_quotients(self, target: Expr) -> Iterator[Dim]:
        """Eliminate a quotient q of symbols by what it is: a - b < b * q <= a for q = a // b."""
        for atom in dict.fromkeys(atom for monomial, _ in target.terms for atom in monomial if atom.op == "floordiv"):
            form = _linear_in_atom(target, atom)
            dividend, divisor = atom.args
            if form is None or not isinstance(divisor, int) or divisor <= 0:
                continue
            times = expr.floordiv(form[0], divisor)
            rest = form[1]
            if expr.mul(times, divisor) != form[0]:
                if not self.is_goal:
                    continue
                # An integer is not negative if a multiple of it is above what is lost by the division.
                times, rest = form[0], expr.add(expr.mul(rest, divisor), divisor - 1)
            if self._has_sign(times, 1):
                yield from self.ends(expr.add(rest, expr.mul(times, expr.sub(dividend, divisor - 1))))
            elif self._has_sign(times, -1):
                yield from self.ends(expr.add(rest, expr.mul(times, dividend)))

    def _by_extremes(self, target: Expr) -> Iterator[Dim]:
        """Eliminate a minimum that is subtracted, or a maximum that is added, by each of what it is of."""
        for atom in dict.fromkeys(atom for monomial, _ in target.terms for atom in monomial):
            if atom.op not in ("min", "max"):
                continue
            form = _linear_in_atom(target, atom)
            if form is not None and self._has_sign(form[0], 1 if atom.op == "max" else -1):
                for dim in atom.args:
                    yield from self.ends(expr.add(form[1], expr.mul(form[0], dim)))


def linear_in(dim: Dim, name: str) -> tuple[Dim, Dim] | None:
    """`(slope, rest)` with `dim == slope * name + rest`; None when it is not linear in `name`."""
    if isinstance(dim, int):
        return 0, dim
    found = {atom for monomial, _ in dim.terms for atom in monomial if name in atom.symbols}
    if not found:
        return 0, dim
    (atom, *others) = found
    return None if others or atom.key != name else _linear_in_atom(dim, atom)


def _linear_in_atom(dim: Expr, atom: Atom) -> tuple[Dim, Dim] | None:
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
