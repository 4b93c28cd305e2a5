"""Canonical names of symbols: s0, s1, … by first use, independent of their original names.

Within one dim the order of terms depends on the names themselves, so symbols are distinguished by their use: their
bounds, and for every dim, in order, the terms that contain the symbol, as seen from the symbol. Refining this until
nothing changes distinguishes all symbols except interchangeable ones, which may come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..expr import Atom, Dim, Expr, Monomial

Rank = dict[str, int]
Term = tuple[Monomial, int]
Uses = Mapping[str, Mapping[int, Sequence[Term]]]
"""For each symbol the terms that contain it, by the position of their dim."""

_UNORDERED = ("max", "min")


def canonical_names(dims: Sequence[Dim], bounds: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """The canonical name of each symbol. `dims`: the distinct symbolic dims of the graph in canonical order."""
    uses = _uses(dims, bounds)
    ranks = _ranked({name: (_first(uses[name]), bounds[name]) for name in bounds})
    while True:
        ranks = _refined(ranks, uses)
        tied = sorted((rank, name) for name, rank in ranks.items() if list(ranks.values()).count(rank) > 1)
        if not tied:
            break
        ranks[tied[0][1]] -= 1
    return {name: f"s{position}" for position, name in enumerate(sorted(ranks, key=lambda name: ranks[name]))}


def _uses(dims: Sequence[Dim], names: Iterable[str]) -> Uses:
    uses: dict[str, dict[int, list[Term]]] = {name: {} for name in names}
    for position, dim in enumerate(dims):
        for term in dim.terms if isinstance(dim, Expr) else ():
            for name in frozenset[str]().union(*(atom.symbols for atom in term[0])):
                uses[name].setdefault(position, []).append(term)
    return uses


def _first(positions: Mapping[int, object]) -> tuple[bool, int]:
    """Sort key: by first use, unused symbols last."""
    return (False, next(iter(positions))) if positions else (True, 0)


def _ranked(keys: Mapping[str, object]) -> Rank:
    """The rank of each name by its key; equal keys share a rank. Ranks are even, to leave room for breaking ties."""
    order = sorted(set(keys.values()))  # type: ignore[type-var]  # keys of one call have one comparable type
    return {name: 2 * order.index(key) + 2 for name, key in keys.items()}


def _refined(ranks: Rank, uses: Uses) -> Rank:
    """The coarsest ranks that agree with `ranks` and with every use."""
    while True:
        marks = {name: f"#{rank:04}" for name, rank in ranks.items()}
        seen = {name: (rank, _seen_from(uses[name], {**marks, name: "@"})) for name, rank in ranks.items()}
        refined = _ranked(seen)
        if len(set(refined.values())) == len(set(ranks.values())):
            return refined
        ranks = refined


def _seen_from(uses: Mapping[int, Sequence[Term]], marks: Mapping[str, str]) -> tuple[object, ...]:
    """The symbol's terms in each dim, in an order independent of names: symbols are written as their `marks`.

    Other terms of a dim need no comparison: for two symbols of one rank they are equal when these are.
    """
    return tuple((position, tuple(sorted(_term(*term, marks) for term in terms))) for position, terms in uses.items())


def _text(dim: Dim, marks: Mapping[str, str]) -> str:
    return str(dim) if isinstance(dim, int) else "+".join(sorted(_term(*term, marks) for term in dim.terms))


def _term(monomial: Monomial, coefficient: int, marks: Mapping[str, str]) -> str:
    return "*".join([*sorted(_factor(atom, marks) for atom in monomial), str(coefficient)])


def _factor(atom: Atom, marks: Mapping[str, str]) -> str:
    if atom.op == "symbol":
        return marks[atom.key]
    args = [_text(arg, marks) for arg in atom.args]
    return f"{atom.op}({','.join(sorted(args) if atom.op in _UNORDERED else args)})"
