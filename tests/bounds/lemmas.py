"""What is proven in a scope, for the proofs after it: most accesses of one block differ by a nonnegative distance."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from tensorkiln import expr
from tensorkiln.expr import Dim, Expr

from .elimination import holds
from .facts import Facts
from .polynomials import without_constant
from .scope import Scope

MAX_LEMMAS: Final = 16
"""How many proven polynomials of a scope are compared with a new one: the latest."""


@dataclass(frozen=True, slots=True)
class Lemmas:
    """Polynomials that are proven to be nonnegative, by the facts of the scope that they are proven in."""

    facts: Facts
    _proven: dict[object, deque[Expr]] = field(default_factory=dict[object, "deque[Expr]"])
    _least: dict[object, int] = field(default_factory=dict[object, int])
    """The least constant that is proven beside the other terms of a polynomial."""

    def prove(self, scope: Scope, targets: Iterable[Dim], steps: int) -> bool:
        """Whether all `targets` are proven to be nonnegative, each within `steps` eliminations."""
        return all(self._holds(scope, target, steps) for target in targets)

    def _holds(self, scope: Scope, target: Dim, steps: int) -> bool:
        if isinstance(target, int):
            return target >= 0 or not scope.is_reached
        if self.facts.interval(target)[0] >= 0:
            return True
        # The ranges of a scope follow from its facts.
        facts = scope.given, scope.is_reached
        terms, constant = without_constant(target)
        if self._least.get((facts, terms), inf) <= constant:
            return True
        known = self._proven.setdefault(facts, deque(maxlen=MAX_LEMMAS))
        if not any(self._is_above(target, lemma) for lemma in known):
            if not holds(self.facts, target, scope, steps):
                return False
            known.appendleft(target)
        self._least[facts, terms] = constant
        return True

    def _is_above(self, target: Expr, lemma: Expr) -> bool:
        try:
            return self.facts.interval(expr.sub(target, lemma))[0] >= 0
        except expr.ExprError:
            # The difference has more terms than an expression may have.
            return False
