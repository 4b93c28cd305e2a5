"""Signs of sums in which a floor division is multiplied: `h - 2 * (h // 2)` is nonnegative.

The windows of an image with strides reach up to such a sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tensorkiln import expr
from tensorkiln.expr import Atom, Dim, Expr

_MOST_DIVISIONS: Final = 8
"""The most floor divisions of a sum that are replaced."""
_REMAINDER: Final = "a remainder {}"
"""Names of remainders; no symbol and no loop has such a name."""


def is_nonnegative(dim: Dim, ranges: Mapping[str, tuple[int, int]], extents: Mapping[str, Dim]) -> bool:
    """Whether `dim >= 0` can be proven, with symbols in `ranges` and indices from 0 below their `extents`."""
    for name in sorted(expr.free_symbols(dim) & extents.keys()):
        assert isinstance(dim, Expr), "it has a symbol"
        factor = expr.slope(dim, name)
        if factor is None or expr.free_symbols(factor) & extents.keys():
            return False
        low, high = expr.bounds(factor, ranges)
        if low < 0 < high:
            return False
        dim = expr.substitute(dim, {name: 0 if low >= 0 else expr.sub(extents[name], 1)})
        if isinstance(dim, int):
            return dim >= 0
    return _is_nonnegative(dim, dict(ranges))


def _is_nonnegative(dim: Dim, ranges: dict[str, tuple[int, int]]) -> bool:
    """`d * (e // d)` is `e - m` for a number m in `0 .. d - 1`, of which nothing else is known."""
    for turn in range(_MOST_DIVISIONS):
        if expr.free_symbols(dim) - ranges.keys():
            return False
        if expr.bounds(dim, ranges)[0] >= 0:
            return True
        division = _outermost(dim)
        if division is None:
            return False
        dividend, divisor = division.args
        assert isinstance(divisor, int), "such divisions are chosen"
        name = _REMAINDER.format(turn)
        ranges[name] = 0, divisor - 1
        multiplied = _multiplied(dim, division, expr.sub(dividend, expr.symbol(name)), divisor)
        if multiplied is None:
            return False
        dim = multiplied
    return False


def _outermost(dim: Dim) -> Atom | None:
    """The deepest floor division by a positive constant: its dividend may cancel others."""
    atoms = [atom for monomial, _ in dim.terms for atom in monomial] if isinstance(dim, Expr) else []
    found = [atom for atom in atoms if atom.op == "floordiv" and isinstance(atom.args[1], int) and atom.args[1] > 0]
    return max(found, key=lambda atom: atom.depth, default=None)


def _multiplied(dim: Dim, division: Atom, multiple: Dim, divisor: int) -> Dim | None:
    """`divisor * dim`, in which `multiple` is `divisor * division`; None if the division has a power."""
    total: Dim = 0
    for monomial, coefficient in dim.terms if isinstance(dim, Expr) else ():
        others = [atom for atom in monomial if atom != division]
        if len(monomial) - len(others) > 1:
            return None
        scale = divisor if len(others) == len(monomial) else multiple
        rest: Dim = Expr(((tuple(others), coefficient),)) if others else coefficient
        total = expr.add(total, expr.mul(scale, rest))
    return total
