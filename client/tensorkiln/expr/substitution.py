"""Substitution of symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from .algebra import Atom, Dim, Expr, add, floordiv, floormod, free_symbols, idiv, maximum, minimum, mod, mul

CALLS: Final[dict[str, Callable[..., Dim]]] = {
    "floordiv": floordiv,
    "floormod": floormod,
    "idiv": idiv,
    "mod": mod,
    "max": maximum,
    "min": minimum,
}
"""The functions that build an atom from its arguments, by op."""


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """`dim` with each named symbol replaced; names that do not occur are ignored."""
    if isinstance(dim, int) or free_symbols(dim).isdisjoint(values):
        return dim
    return add(
        *(
            mul(coefficient, *(_substitute_atom(atom, values) for atom in monomial))
            for monomial, coefficient in dim.terms
        )
    )


def _substitute_atom(atom: Atom, values: Mapping[str, Dim]) -> Dim:
    if atom.op == "symbol":
        return values.get(atom.key, Expr((((atom,), 1),)))
    return CALLS[atom.op](*(substitute(arg, values) for arg in atom.args))
