"""Where a stage reads: linear accesses, which become strided operands, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tensorkiln.expr import Dim, free_symbols

from .index_space import linear_form
from .scalar_dag import Interner, Load, Node, indices, walk


@dataclass(frozen=True, slots=True)
class Access:
    """A read at `offset + sum(stride * loop)` elements, the loops being those that it was asked in terms of."""

    load: Load
    offset: Dim
    strides: tuple[Dim, ...]


def loads(roots: Iterable[Node], nodes: Interner) -> list[Load]:
    """The loads below `roots`, those that give run-time indices included."""
    return [node for node in walk(roots, nodes) if isinstance(node, Load)]


def linear_access(load: Load, nodes: Interner, names: Sequence[str]) -> Access | None:
    """`load` in terms of the loops called `names`, or None when it is not linear in them or depends on data."""
    form = linear_form(load.address, names)
    if form is None or any(not free_symbols(part).isdisjoint(nodes.dynamic) for part in (form[0], *form[1])):
        return None
    return Access(load, *form)


def pinned_names(roots: Iterable[Node], nodes: Interner, names: Sequence[str]) -> frozenset[str]:
    """Names in conditions, index values and addresses that are not linear: such loops must keep their identity."""
    pinned: set[str] = set()
    for node in walk(roots, nodes):
        for index in indices(node):
            is_linear = isinstance(node, Load) and index is node.address and linear_access(node, nodes, names)
            if not is_linear:
                pinned |= free_symbols(index)
    return frozenset(pinned)
