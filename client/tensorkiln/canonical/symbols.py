"""Canonical names of symbols: s0, s1, … by first use, whatever they were called.

Within one dim the order of terms depends on the names themselves, so symbols are told apart by how they are used:
their bounds, and for every dim, in order, the text of the dim as seen from the symbol. Refining that until nothing
changes tells apart all symbols but those that are interchangeable, of which any may come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..expr import Dim, free_symbols, substitute, symbol

Rank = dict[str, int]


def canonical_names(dims: Sequence[Dim], bounds: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """The canonical name of each symbol. `dims`: the distinct symbolic dims of the graph in canonical order."""
    uses: dict[str, list[int]] = {name: [] for name in bounds}
    for position, dim in enumerate(dims):
        for name in free_symbols(dim):
            uses[name].append(position)
    ranks = _ranked({name: (_first(uses[name]), bounds[name]) for name in bounds})
    while True:
        ranks = _refined(ranks, dims, uses)
        tied = sorted((rank, name) for name, rank in ranks.items() if list(ranks.values()).count(rank) > 1)
        if not tied:
            break
        ranks[tied[0][1]] -= 1
    return {name: f"s{position}" for position, name in enumerate(sorted(ranks, key=lambda name: ranks[name]))}


def _first(positions: Sequence[int]) -> tuple[bool, int]:
    """Sorts by first use, the unused last."""
    return (False, positions[0]) if positions else (True, 0)


def _ranked(keys: Mapping[str, object]) -> Rank:
    """The rank of each name by its key; equal keys share one. Ranks are even, so that a tie can be broken between."""
    order = sorted(set(keys.values()))  # type: ignore[type-var]  # keys of one call have one comparable type
    return {name: 2 * order.index(key) + 2 for name, key in keys.items()}


def _refined(ranks: Rank, dims: Sequence[Dim], uses: Mapping[str, Sequence[int]]) -> Rank:
    """The coarsest ranks that agree with `ranks` and with every use."""
    while True:
        seen = {
            name: (rank, tuple((at, _seen_from(name, dims[at], ranks)) for at in uses[name]))
            for name, rank in ranks.items()
        }
        refined = _ranked(seen)
        if len(set(refined.values())) == len(set(ranks.values())):
            return refined
        ranks = refined


def _seen_from(name: str, dim: Dim, ranks: Rank) -> str:
    """The text of `dim` with the symbol itself marked and all others known by rank alone."""
    others = {other: symbol(f"#{ranks[other]:04}") for other in free_symbols(dim)}
    return str(substitute(dim, {**others, name: symbol("@")}))
