"""The canonical order of a graph's nodes, which depends neither on names nor on the order of the list.

Depth first from the inputs and then the outputs, in their order, along operands in field order, every node after its
dependencies. A node also depends on the last earlier assign to storage that it reads, and an assign on the previous
assign to its storage. An assign moves behind the earlier readers of its target; the rest of the order is kept as far as
possible. Nodes that are not reached are dead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from ..graph import Graph
from ..infer import innermost, innermost_kinds
from ..nodes import AnyNode, Assign, Buffer, BufferView, out_vars


@dataclass(slots=True)
class Dependencies:
    """The dependencies of each node of a graph, by index.

    `outs`: the vars that a node defines. `definers`: the node that gives a var its storage. `before`: a node's
    dependencies, in field order, then earlier assigns to storage that it uses. `readers`: for an assign, the earlier
    readers of its target, which must run before it.
    """

    outs: list[tuple[int, ...]]
    definers: dict[int, int]
    before: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    readers: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    last_writes: dict[int, int] = field(default_factory=dict[int, int])
    storages: dict[int, int] = field(default_factory=dict[int, int])

    def of_output(self, var: int) -> list[int]:
        """The nodes that an output var depends on: its definition, and the last assign to its storage, if any."""
        write = self.last_writes.get(self.storages.get(var, var))
        return [self.definers[var]] if write is None else [self.definers[var], write]


def dependencies(graph: Graph) -> Dependencies:
    """The dependencies of every node."""
    outs = [out_vars(node) for node in graph.nodes]
    definers = _definers(graph, outs)
    found = Dependencies(outs, definers)
    has_assigns = Assign in innermost_kinds(graph.nodes)
    reading: dict[int, list[int]] = {}
    for index, node in enumerate(graph.nodes):
        found.before[index] = [definers[var] for var in node.operands]
        if has_assigns:
            _order_in_memory(found, reading, index, node)
    return found


def _definers(graph: Graph, outs: list[tuple[int, ...]]) -> dict[int, int]:
    """For each var the first node that defines it, or the second where the first only declares its destination."""
    definers: dict[int, int] = {}
    for index, defined in enumerate(outs):
        for var in defined:
            first = definers.setdefault(var, index)
            if first == index:
                continue
            if isinstance(graph.nodes[first], Buffer) and not _is_update(graph.nodes[index], var):
                definers[var] = index
    return definers


def _is_update(node: AnyNode, var: int) -> bool:
    inner = innermost(node)
    return isinstance(inner, Assign) and inner.target_var == var


def _order_in_memory(found: Dependencies, reading: dict[int, list[int]], index: int, node: AnyNode) -> None:
    """Add the dependencies of one node through storage that assigns write."""
    inner = innermost(node)
    if isinstance(inner, BufferView):
        found.storages[inner.out_var] = found.storages.get(inner.buffer_var, inner.buffer_var)
        return
    read = dict.fromkeys(found.storages.get(var, var) for var in node.operands)
    found.before[index] += [found.last_writes[storage] for storage in read if storage in found.last_writes]
    if not isinstance(inner, Assign):
        for storage in read:
            reading.setdefault(storage, []).append(index)
        return
    target = found.storages.get(inner.target_var, inner.target_var)
    for storage in read:
        if storage != target:
            reading.setdefault(storage, []).append(index)
    found.readers[index] = reading.pop(target, [])
    found.last_writes[target] = index


def depth_first(before: dict[int, list[int]], roots: Iterable[int], visited: dict[int, None]) -> None:
    """Add the roots and their transitive dependencies to `visited`, each node after its dependencies."""
    for root in roots:
        pending = [(root, iter(before[root]))] if root not in visited else []
        while pending:
            index, rest = pending[-1]
            for needed in rest:
                if needed not in visited:
                    pending.append((needed, iter(before[needed])))
                    break
            else:
                pending.pop()
                visited[index] = None


def reached(graph: Graph, found: Dependencies, further: Iterable[int]) -> list[int]:
    """The nodes that inputs, outputs and `further` nodes depend on, and these, in canonical order."""
    visited: dict[int, None] = {}
    depth_first(found.before, (found.definers[var] for var in graph.input_vars), visited)
    depth_first(found.before, (index for var in graph.output_vars for index in found.of_output(var)), visited)
    depth_first(found.before, further, visited)
    order = list(visited)
    return after_readers(order, found) if any(found.readers.get(index) for index in order) else order


def after_readers(order: list[int], found: Dependencies) -> list[int]:
    """`order`, with every assign moved behind the earlier readers of its target."""
    rank = {index: position for position, index in enumerate(order)}
    waiting = {index: {*found.before[index], *found.readers.get(index, ())} & rank.keys() for index in order}
    dependents: dict[int, list[int]] = {index: [] for index in order}
    for index, needed in waiting.items():
        for other in needed:
            dependents[other].append(index)
    ready = [rank[index] for index, needed in waiting.items() if not needed]
    heapify(ready)
    result: list[int] = []
    while ready:
        index = order[heappop(ready)]
        result.append(index)
        for dependent in dependents[index]:
            waiting[dependent].discard(index)
            if not waiting[dependent]:
                heappush(ready, rank[dependent])
    return result
