"""Conditions on the call that only dead nodes state."""

from __future__ import annotations

from collections.abc import Mapping

from ..expr import Dim, neg, sub, substitute, symbol
from ..graph import Constraint, Graph
from ..infer import innermost
from ..nodes import Assign, SymVar, out_vars
from ..nodes.base import record_of
from ..types import canonical_device
from .form import Canonical
from .order import Dependencies, depth_first
from .rename import renamed_fields


def lost_conditions(graph: Graph, found: Dependencies, canonical: Canonical) -> list[int]:
    """The dead nodes of `graph` to keep, in canonical order: they state conditions on the call that `canonical` lacks.

    Where several dead nodes state one condition, the first in the user's order is kept. Only for such graphs can the
    digest depend on the order of the nodes.
    """
    if not graph.constraints:
        return []
    users: dict[str, Dim] = {name: symbol(user) for name, user in canonical.symbols.items()}
    known = {key for constraint in canonical.graph.constraints for key in _keys(constraint, users)}
    indices = {_node_of(constraint) for constraint in graph.constraints if known.isdisjoint(_keys(constraint, {}))}
    staying = {index for index in indices if index is not None and _may_stay(graph, found, index)}
    return sorted(staying, key=lambda index: _content(graph, found, index))


def _keys(constraint: Constraint, users: Mapping[str, Dim]) -> list[tuple[str, Dim]]:
    """Keys that identify a condition: the difference of its sides, with both signs for an equality."""
    difference = substitute(sub(constraint.left, constraint.right), users)
    if constraint.kind == "ge":
        return [("ge", difference)]
    return [("eq", difference), ("eq", neg(difference))]


def _node_of(constraint: Constraint) -> int | None:
    _, section, index, *_ = constraint.pointer.split("/")
    return int(index) if section == "nodes" else None


def _may_stay(graph: Graph, found: Dependencies, index: int) -> bool:
    """False for a node that only declares a destination: the node that fills it states the same conditions."""
    node = graph.nodes[index]
    return isinstance(innermost(node), Assign) or any(found.definers[var] == index for var in out_vars(node))


def _content(graph: Graph, found: Dependencies, root: int) -> str:
    """A text that is equal for nodes with equal computations on equal inputs, independent of names."""
    visited: dict[int, None] = {}
    depth_first(found.before, [root], visited)
    bounds: dict[str, Dim] = {name: symbol(f"{low}..{high}") for name, (low, high) in graph.symbols.items()}
    anonymous = {name: SymVar(name="s", min_val=low, max_val=high) for name, (low, high) in graph.symbols.items()}
    places = {var: f"input {position}" for position, var in enumerate(graph.input_vars)}
    local: dict[int, int] = {}
    parts: list[str] = []
    for index in visited:
        node = graph.nodes[index]
        for var in out_vars(node):
            local.setdefault(var, len(local))
        fields = renamed_fields(node, local, local, lambda dim: substitute(dim, bounds), anonymous, canonical_device)
        plain = record_of(type(node), fields)
        parts.append(f"{[places.get(var, '') for var in out_vars(node)]} {plain!r}")
    return "\n".join(parts)
