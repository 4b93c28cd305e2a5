"""Facts that hold at a place of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tensorkiln import expr
from tensorkiln.expr import Atom, Dim, Expr

from .polynomials import Range, degree, without_constant


@dataclass(frozen=True, slots=True)
class Scope:
    """Facts that hold at a place of a kernel: `given` are nonnegative, `ranges` bound the graph's symbols.

    If the facts contradict each other, the place is not reached, and everything is proven there.
    """

    ranges: Mapping[str, Range]
    given: tuple[Dim, ...] = ()
    is_reached: bool = True
    _bounds: dict[Atom, Range] = field(default_factory=dict[Atom, Range], compare=False, repr=False)
    """Of atoms over symbols, which many polynomials share."""

    def is_nonnegative(self, dim: Dim) -> bool:
        """Whether `dim`, of symbols only, is nonnegative by interval arithmetic."""
        if isinstance(dim, int):
            return dim >= 0
        low = 0
        for monomial, coefficient in dim.terms:
            least = most = coefficient
            for atom in monomial:
                left, right = self._bounds.get(atom) or self._bounds_of(atom)
                corners = least * left, least * right, most * left, most * right
                least, most = min(corners), max(corners)
            low += least
        return low >= 0

    def _bounds_of(self, atom: Atom) -> Range:
        found = self._bounds[atom] = expr.bounds(Expr((((atom,), 1),)), self.ranges)
        return found

    def where(self, facts: Iterable[Dim]) -> Scope:
        """The scope with `facts` as further nonnegative facts."""
        ranges = dict(self.ranges)
        given = list(self.given)
        is_reached = self.is_reached
        for fact in facts:
            if isinstance(fact, int):
                is_reached = is_reached and fact >= 0
                continue
            if fact in given:
                continue
            is_reached = is_reached and not _is_denied(fact, given)
            given.append(fact)
            _narrow(fact, ranges)
            positive = tuple(_positive_symbols(fact))
            # Only nonnegative factors, since a product of two negative numbers is positive, too.
            if all(name in ranges and ranges[name][0] >= 0 for name in positive):
                ranges |= {name: (max(ranges[name][0], 1), ranges[name][1]) for name in positive}
        is_reached = is_reached and all(low <= high for low, high in ranges.values())
        bounds = self._bounds if ranges == self.ranges else {}
        return replace(self, ranges=ranges, given=tuple(given), is_reached=is_reached, _bounds=bounds)


def _is_denied(fact: Expr, given: Iterable[Dim]) -> bool:
    """Whether the sum of `fact` and one of `given` is a negative number."""
    terms, constant = without_constant(fact)
    opposite = tuple((monomial, -coefficient) for monomial, coefficient in terms)
    others = (without_constant(other) for other in given if isinstance(other, Expr))
    return any(theirs == opposite and constant + number < 0 for theirs, number in others)


def _narrow(fact: Expr, ranges: dict[str, Range]) -> None:
    """Narrow the range of a symbol that the nonnegative `fact` compares with a number."""
    *constant, (monomial, coefficient) = sorted(fact.terms, key=degree)
    names = {atom.key for atom in monomial}
    if len(constant) > 1 or len(names) != 1 or (constant and constant[0][0]):
        return
    number = constant[0][1] if constant else 0
    (name,) = names
    if name not in ranges:
        return
    low, high = ranges[name]
    if coefficient < 0 and (len(monomial) == 1 or (number < -coefficient and low >= 0)):
        # For powers and products only if they must be 0.
        ranges[name] = (low, min(high, number // -coefficient))
    elif coefficient > 0 and len(monomial) == 1:
        ranges[name] = (max(low, -(number // coefficient)), high)


def _positive_symbols(fact: Expr) -> Iterator[str]:
    """The symbols that are positive if `fact`, a product minus a positive number, is nonnegative."""
    *rest, last = sorted(fact.terms, key=lambda term: -len(term[0]))
    if len(rest) == 1 and not last[0] and last[1] < 0 and rest[0][1] > 0:
        yield from (atom.key for atom in rest[0][0] if atom.op == "symbol")
