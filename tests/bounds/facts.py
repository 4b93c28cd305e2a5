"""Known facts about the integers of a kernel.

The analysis represents every integer as a polynomial (a `Dim`) over the graph's symbols and over *unknowns*: loop
indices, quotients, minima, values read at run time. An unknown is created with lower and upper bounds over symbols and
earlier unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import inf

from tensorkiln import expr
from tensorkiln.expr import Atom, Dim, Expr

from .polynomials import Range, Sample
from .scope import Scope

SAMPLES = (0, 1, 2, 5, 40)
"""Sample values of a symbol, as offsets from its least value."""
MAX_SAMPLES = 125

UNKNOWN = "?"
"""The prefix of the names of unknowns; no symbol has it."""
Interval = tuple[float, float]
"""Inclusive numeric bounds of an integer; infinite if it is unbounded."""


@dataclass(slots=True)
class Unknown:
    """An integer with lower and upper bounds over symbols and earlier unknowns.

    A remainder also has a `definition`, in terms of the quotient.
    """

    rank: int
    lowers: tuple[Dim, ...]
    uppers: tuple[Dim, ...]
    interval: Interval
    definition: Dim | None = None


@dataclass(slots=True)
class Facts:
    """The unknowns of a kernel; `ranges` are those of the graph's symbols."""

    ranges: Mapping[str, Range]
    unknowns: dict[str, Unknown] = field(default_factory=dict[str, Unknown])
    divided: dict[str, tuple[Dim, Dim]] = field(default_factory=dict[str, tuple[Dim, Dim]])
    """Of unknowns that are quotients: the dividend and the divisor."""
    quotients: dict[object, Sequence[Dim]] = field(default_factory=dict[object, Sequence[Dim]])
    """Upper bounds of quotients by the facts of a scope."""
    _samples: dict[object, list[Sample]] = field(default_factory=dict[object, list[Sample]])
    _intervals: dict[Atom, Interval] = field(default_factory=dict[Atom, Interval])
    _latest: dict[Expr, str | None] = field(default_factory=dict[Expr, "str | None"])

    def new(self, lowers: Iterable[Dim] = (), uppers: Iterable[Dim] = (), definition: Dim | None = None) -> Dim:
        """Create an unknown with these lower and upper bounds, and equal to `definition` if given."""
        name = f"{UNKNOWN}{len(self.unknowns)}"
        below, above = tightest(lowers, max), tightest(uppers, min)
        least = max((self.interval(bound)[0] for bound in below), default=-inf)
        most = min((self.interval(bound)[1] for bound in above), default=inf)
        self.unknowns[name] = Unknown(len(self.unknowns), below, above, (least, most), definition)
        return expr.symbol(name)

    def latest(self, dim: Expr) -> str | None:
        """The unknown in `dim` that was created last; None if it has none."""
        if dim not in self._latest:
            names = expr.free_symbols(dim) & self.unknowns.keys()
            self._latest[dim] = max(names, key=lambda name: self.unknowns[name].rank, default=None)
        return self._latest[dim]

    def samples(self, scope: Scope) -> Sequence[Sample]:
        """Sample values of the symbols that satisfy the scope's facts of symbols only."""
        known = tuple(fact for fact in scope.given if expr.free_symbols(fact).isdisjoint(self.unknowns))
        key = known, tuple(scope.ranges.items())
        if key not in self._samples:
            few = [dict.fromkeys(min(low + more, high) for more in SAMPLES) for low, high in scope.ranges.values()]
            drawn = islice(product(*few), MAX_SAMPLES)
            found = (Sample(dict(zip(scope.ranges, values, strict=True))) for values in drawn)
            self._samples[key] = [sample for sample in found if all(sample[fact] >= 0 for fact in known)]
        return self._samples[key]

    def of_symbols(self, fact: Dim) -> Dim | None:
        """An upper bound of `fact` over symbols, with unknowns replaced by their bounds; None if one has none."""
        if isinstance(fact, int):
            return fact
        most: Dim = 0
        for monomial, coefficient in fact.terms:
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
        """Numeric bounds of `dim` by interval arithmetic, which treats its unknowns and symbols as independent."""
        if isinstance(dim, int):
            return dim, dim
        low = high = 0.0
        for monomial, coefficient in dim.terms:
            least: float = coefficient
            most: float = coefficient
            for atom in monomial:
                left, right = self._intervals.get(atom) or self._interval_of(atom)
                corners = [_times(a, b) for a in (least, most) for b in (left, right)]
                least, most = min(corners), max(corners)
            low, high = low + least, high + most
        return low, high

    def _interval_of(self, atom: Atom) -> Interval:
        known = self.unknowns.get(atom.key)
        found: Interval = -inf, inf
        if known is not None:
            found = known.interval
        elif atom.symbols <= self.ranges.keys():
            found = expr.bounds(Expr((((atom,), 1),)), self.ranges)
        self._intervals[atom] = found
        return found


def tightest(bounds: Iterable[Dim], best: Callable[[Iterable[int]], int]) -> tuple[Dim, ...]:
    """The distinct bounds, with only the `best` of those that are numbers; bounds with few names come first."""
    unique = dict.fromkeys(bounds)
    numbers = [bound for bound in unique if isinstance(bound, int)]
    others = sorted((bound for bound in unique if not isinstance(bound, int)), key=_size)
    return (*([best(numbers)] if numbers else []), *others)


def _size(bound: Expr) -> tuple[int, int, int]:
    unknowns = sum(name.startswith(UNKNOWN) for name in expr.free_symbols(bound))
    return unknowns, expr.depth(bound), len(bound.terms)


def _times(left: float, right: float) -> float:
    """A product in which 0 times infinity is 0."""
    return 0 if left == 0 or right == 0 else left * right
