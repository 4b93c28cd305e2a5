"""The value of a dim under a binding of its symbols, in checked 64-bit arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from .algebra import Atom, Dim
from .errors import ExprError
from .substitution import CALLS

INT64_MIN = -(1 << 63)
INT64_MAX = (1 << 63) - 1


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The value of `dim`; extra names in `values` are ignored.

    ExprError when a symbol has no value, when a step leaves the range of a 64-bit integer, or when a divisor is zero.
    """
    if isinstance(dim, int):
        return _checked(dim, 0, "Add", dim)
    total = 0
    for monomial, coefficient in dim.terms:
        term = coefficient
        for atom in monomial:
            factor = _atom_value(atom, values)
            term = _checked(term, factor, "Mul", term * factor)
        total = _checked(total, term, "Add", total + term)
    return total


def _checked(left: int, right: int, op: str, value: int) -> int:
    if not INT64_MIN <= value <= INT64_MAX:
        raise ExprError(f"invalid launch-size arithmetic: {left} {op} {right}")
    return value


def _atom_value(atom: Atom, values: Mapping[str, int]) -> int:
    if atom.op == "symbol":
        if atom.key not in values:
            raise ExprError(f"missing runtime value for launch-size variable {atom.key}")
        return values[atom.key]
    args = [evaluate(arg, values) for arg in atom.args]
    if atom.op in ("max", "min"):
        return reduce(max if atom.op == "max" else min, args)
    left, right = args
    if right == 0 or (left == INT64_MIN and right == -1):
        raise ExprError(f"invalid launch-size arithmetic: {left} {_DIVISIONS[atom.op]} {right}")
    value = CALLS[atom.op](left, right)
    assert isinstance(value, int), "a call on constants folds to a constant"
    return value


_DIVISIONS = {"idiv": "Idiv", "mod": "Mod", "floordiv": "FloorDiv", "floormod": "FloorMod"}
