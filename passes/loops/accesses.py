"""How a stage reads its operands: by linear accesses, which become strided operands, in panels, or otherwise."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from tensorkiln.expr import Dim, Expr, floordiv, floormod, free_symbols, mul, sub, substitute, symbol

from .index_space import linear_form, name_of
from .scalar_dag import Interner, Load, Node, indices, walk


@dataclass(frozen=True, slots=True)
class Panels:
    """Panels of `tile` contiguous steps of a loop, `size` elements from one panel to the next."""

    loop: str
    tile: int
    size: int


@dataclass(frozen=True, slots=True)
class Access:
    """A read at `offset + sum(stride * loop)` elements, for the given loops.

    For an operand in `panels`, the stride of their loop is that from one panel to the next.
    """

    load: Load
    offset: Dim
    strides: tuple[Dim, ...]
    panels: Panels | None = None


def loads(roots: Iterable[Node], nodes: Interner) -> list[Load]:
    """The loads below `roots`, including those of run-time indices."""
    return [node for node in walk(roots, nodes) if isinstance(node, Load)]


def linear_access(load: Load, nodes: Interner, names: Sequence[str]) -> Access | None:
    """`load` in terms of the loops called `names`; None if it is not linear in them or depends on data."""
    form = linear_form(load.address, names)
    if form is None:
        return None
    if nodes.dynamic and any(not free_symbols(part).isdisjoint(nodes.dynamic) for part in (form[0], *form[1])):
        return None
    return Access(load, *form)


def panel_access(load: Load, names: Sequence[str]) -> Access | None:
    """`load` at `p * floordiv(i, t) + floormod(i, t)` of one loop, and linear in the others; else None."""
    address = load.address
    for (remainder, *others), coefficient in address.terms if isinstance(address, Expr) else ():
        if others or coefficient != 1 or remainder.op != "floormod":
            continue
        name, tile = name_of(remainder.args[0]), remainder.args[1]
        if name not in names or not isinstance(tile, int):
            continue
        beside = sub(address, floormod(symbol(name), tile))
        # From one panel to the next.
        size = sub(substitute(beside, {name: tile}), substitute(beside, {name: 0}))
        form = linear_form(sub(beside, mul(size, floordiv(symbol(name), tile))), names)
        if isinstance(size, int) and size and form is not None and form[1][names.index(name)] == 0:
            strides = tuple(size if other == name else stride for other, stride in zip(names, form[1], strict=True))
            return Access(load, form[0], strides, Panels(name, tile, size))
    return None


def pinned_names(
    roots: Iterable[Node], nodes: Interner, names: Sequence[str], in_panels: Container[int] = ()
) -> frozenset[str]:
    """The loops that must not be merged: those in conditions, index values and addresses that are not linear.

    For the operands `in_panels`, these include the loop of the panels.
    """
    pinned: set[str] = set()
    for node in walk(roots, nodes):
        for index in indices(node):
            access = None
            if isinstance(node, Load) and index is node.address:
                access = panel_access(node, names) if node.operand in in_panels else linear_access(node, nodes, names)
            if access is None:
                pinned |= free_symbols(index)
            elif access.panels is not None:
                pinned.add(access.panels.loop)
    return frozenset(pinned)
