"""One spelling for constructs that importers write in several ways, so that a network is one graph from any format.

Consecutive movements are merged, no-ops are removed, common subexpressions are computed once, and the operands of
commutative operations have one order. No number changes: a removed or merged node only moves elements, or returns its
operand bit for bit, -0 and infinities included (a NaN stays a NaN, maybe with another payload).

A graph with conditions on its calls, with storage that is written to, or with devices is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf
from typing import Final

from ..graph import Graph, VarMetadata
from ..limits import MAX_NODES
from ..nodes import (
    AnyNode,
    Assign,
    Binop,
    Bitcast,
    Buffer,
    BufferView,
    Cast,
    Cat,
    ConstScalar,
    Expand,
    Flip,
    Kernel,
    Pad,
    Permute,
    Placeholder,
    ReduceAxis,
    Reshape,
    Shrink,
    Sink,
    Ternary,
    Unary,
    Vconst,
    View,
    out_vars,
)
from ..types import TensorType
from .rename import renamed_fields
from .spelling_rules import RULES, Rank

_WRITTEN: Final = (Assign, Buffer, BufferView, Kernel, Sink)
_MOVES: Final = (Cat, Expand, Flip, Pad, Permute, Reshape, Shrink, View)
_PURE: Final[frozenset[type[AnyNode]]] = frozenset(
    {*_MOVES, Binop, Bitcast, Cast, ConstScalar, ReduceAxis, Ternary, Unary, Vconst}
)
"""Kinds without side effects: equal fields and operands give equal results, and unread nodes can be removed."""
_PLAIN: Final = {
    kind: tuple(name for name in kind.model_fields if name != "node" and not name.endswith(("_var", "_vars")))
    for kind in _PURE
}
"""The fields that hold no vars."""
_MOST_PASSES: Final = 8
"""A pass may make further rewrites possible; the second pass seldom finds any."""


def one_spelling(graph: Graph) -> Graph:
    """Rewrite the graph to the spelling above. Inputs, outputs, parameters and nodes that remain keep their vars."""
    types = graph.types
    if graph.constraints or any(isinstance(node, _WRITTEN) for node in graph.nodes):
        return graph
    if any(kind.device is not None for kind in types.values()):
        return graph
    for _ in range(_MOST_PASSES):
        before, graph = graph, _Spelling(graph).result()
        if graph == before:
            break
    return graph


@dataclass(slots=True)
class _Spelling:
    """`same` maps each var to the var that has its value. `ranks` orders operands by what they are computed from."""

    graph: Graph
    nodes: dict[int, AnyNode] = field(init=False, default_factory=dict[int, AnyNode])
    types: dict[int, TensorType] = field(init=False)
    same: dict[int, int] = field(init=False)
    ranks: dict[int, Rank] = field(init=False, default_factory=dict[int, Rank])
    known: dict[bytes, int] = field(init=False, default_factory=dict[bytes, int])
    order: list[AnyNode] = field(init=False, default_factory=list[AnyNode])
    readers: dict[int, int] = field(init=False, default_factory=Counter[int])
    unused: int = field(init=False)
    opaque: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.types = dict(self.graph.types)
        self.same = {var: var for var in self.types}
        self.unused = max(self.types, default=-1) + 1
        for node in self.graph.nodes:
            self._count(node, 1)

    def result(self) -> Graph:
        inputs = {var: float(position) for position, var in enumerate(self.graph.input_vars)}
        outputs = frozenset(self.graph.output_vars)
        for node in self.graph.nodes:
            if isinstance(node, Placeholder):
                position = inputs.get(node.out_var, inf)
                told = f"input {position}" if position < inf else f"no input {node.out_var}"
                self.ranks[node.out_var] = (0, position, told.encode())
                self.order.append(node)
            elif type(node) in _PURE:
                self._enter(self._reading(node), outputs)
            else:
                self._enter_opaque(self._reading(node))
        return self._graph(self._living())

    def _reading(self, node: AnyNode) -> AnyNode:
        """The node with its operands replaced by their vars in `same`."""
        if all(self.same[var] == var for var in node.operands):
            return node
        outs = {var: var for var in out_vars(node)}
        return type(node).model_construct(**renamed_fields(node, self.same, outs, None, {}, lambda device: device))

    def _enter(self, node: AnyNode, outputs: frozenset[int]) -> None:
        (out,) = out_vars(node)
        rule = RULES.get(type(node))
        made = node if rule is None else rule(self, node)
        if isinstance(made, int):
            if out not in outputs:
                self._merge(node, out, made)
                return
            made = node
        if made is not node:
            self._count(made, 1)
            self._count(node, -1)
        digest = self._digest(made, out)
        first = self.known.setdefault(digest, out)
        if first != out and out not in outputs:
            self._merge(made, out, first)
            return
        self._add(made, out, digest)

    def _merge(self, node: AnyNode, out: int, var: int) -> None:
        """Remove the node of `out`; its readers read `var` instead."""
        self._count(node, -1)
        self.same[out] = var
        self.readers[var] += self.readers[out]

    def _count(self, node: AnyNode, times: int) -> None:
        for var in node.operands:
            self.readers[var] += times

    def _add(self, node: AnyNode, out: int, digest: bytes) -> None:
        depth = 1 + max((self.ranks[var][0] for var in node.operands), default=-1)
        first = min((self.ranks[var][1] for var in node.operands), default=inf)
        self.ranks[out] = (-depth if isinstance(node, ConstScalar | Vconst) else depth, first, digest)
        self.nodes[out] = node
        self.order.append(node)

    def new(self, make: Callable[[int], AnyNode], kind: TensorType) -> int:
        """Add a node and return its var, or return the var of an equal node."""
        out = self.unused
        node = make(out)
        self.types[out] = kind
        digest = self._digest(node, out)
        first = self.known.setdefault(digest, out)
        if first != out:
            del self.types[out]
            return first
        self.unused += 1
        self.same[out] = out
        self._count(node, 1)
        self._add(node, out, digest)
        return out

    def _enter_opaque(self, node: AnyNode) -> None:
        depth = 1 + max((self.ranks[var][0] for var in node.operands), default=0)
        first = min((self.ranks[var][1] for var in node.operands), default=inf)
        for out in out_vars(node):
            # A unique rank: opaque nodes are never merged.
            self.ranks[out] = (depth, first, b"opaque %d" % self.opaque)
            self.opaque += 1
        self.order.append(node)

    def _digest(self, node: AnyNode, out: int) -> bytes:
        """A digest, equal for nodes that have the same value, independent of var names; -0.0 differs from 0.0.

        Symbols count by name: two with equal bounds differ.
        """
        fields, kind = node.__dict__, self.types[out]
        plain = [fields[name] for name in _PLAIN[type(node)]]
        told = [self.ranks[var][2] for var in node.operands]
        return blake2b(f"{node.node} {plain!r} {kind.shape} {told!r}".encode(), digest_size=16).digest()

    def constant(self, var: int) -> float | None:
        """The number that all elements of a var are, when it comes from a scalar constant; else None."""
        node = self.nodes.get(var)
        while isinstance(node, Reshape | Expand):
            node = self.nodes.get(node.in_var)
        if not isinstance(node, ConstScalar) or isinstance(node.value, bool | None):
            return None
        return float(node.value) if isinstance(node.value, str | float) else node.value

    def _living(self) -> Iterable[AnyNode]:
        """The nodes of impure kinds and those whose results are used, in order."""
        alive = {self.same[var] for var in self.graph.output_vars} | {*self.graph.output_vars, *self.graph.input_vars}
        kept: list[AnyNode] = []
        for node in reversed(self.order):
            if type(node) not in _PURE or not alive.isdisjoint(out_vars(node)):
                alive.update(node.operands)
                kept.append(node)
        return reversed(kept)

    def _graph(self, living: Iterable[AnyNode]) -> Graph:
        nodes = tuple(living)
        if len(nodes) == len(self.graph.nodes) and all(
            one is other for one, other in zip(nodes, self.graph.nodes, strict=True)
        ):
            return self.graph
        if len(nodes) > MAX_NODES:
            # Keeping row axes apart adds a node.
            return self.graph
        stated: dict[int, VarMetadata] = {}
        for node in nodes:
            for var in out_vars(node):
                kind, before = self.types[var], self.graph.vars_metadata.get(var)
                stated[var] = before or VarMetadata.model_construct(dtype=kind.dtype, shape=kind.shape, device=None)
        made = Graph.model_validate(
            {
                "schema_version": 1,
                "name": self.graph.name,
                "nodes": nodes,
                "vars_metadata": stated,
                "input_vars": self.graph.input_vars,
                "parameter_vars": self.graph.parameter_vars,
                "output_vars": self.graph.output_vars,
                "symbolic_vars": self.graph.symbolic_vars,
            }
        )
        # A merged step may need a constraint that the two separate steps did not.
        return self.graph if made.constraints else made
