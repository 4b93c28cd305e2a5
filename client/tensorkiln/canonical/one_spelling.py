"""One spelling of what importers write in several ways, so that one network from several formats is one graph.

Two movements in a row are one, what changes nothing is not there, what is computed twice is computed once, and operands
that may be swapped have one order. No number changes: what is left out or joined moves elements, or gives its operand
bit for bit, -0 and infinities included (of a NaN, that it is one).

A graph with conditions on its calls, with storage that is written to, or with devices is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf
from typing import Any, Final, TypeAlias

from ..dtypes import DType
from ..expr import Dim
from ..graph import Graph, VarMetadata
from ..nodes import (
    AnyNode,
    Assign,
    Binop,
    BinopKind,
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
    ShapeTracker,
    Shrink,
    Sink,
    Ternary,
    Unary,
    Vconst,
    View,
    ViewSpec,
    out_vars,
)
from ..types import TensorType
from .rename import renamed_fields

_WRITTEN: Final = (Assign, Buffer, BufferView, Kernel, Sink)
_MOVES: Final = (Cat, Expand, Flip, Pad, Permute, Reshape, Shrink, View)
_PURE: Final[frozenset[type[AnyNode]]] = frozenset(
    {*_MOVES, Binop, Bitcast, Cast, ConstScalar, ReduceAxis, Ternary, Unary, Vconst}
)
"""What is the same whenever its fields and operands are, and may go when nobody reads it."""
_PLAIN: Final = {
    kind: tuple(name for name in kind.model_fields if name != "node" and not name.endswith(("_var", "_vars")))
    for kind in _PURE
}
"""The fields that hold no vars."""
_SWAPPED: Final = frozenset(
    {BinopKind.ADD, BinopKind.MUL, BinopKind.MAX, BinopKind.MIN, BinopKind.AND, BinopKind.OR, BinopKind.XOR}
)
_MOST_PASSES: Final = 8
"""What a pass leaves out may let another leave out more; the second one seldom finds anything."""

Made: TypeAlias = "AnyNode | int"
"""A node in another spelling, or the var that has its value."""
Shape: TypeAlias = tuple[Dim, ...]


def one_spelling(graph: Graph) -> Graph:
    """The graph in the spelling above. Inputs, outputs and parameters keep their vars, as does each node that stays."""
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
    """`same` is the var that has the value of another. `ranks` orders operands by what they are computed from."""

    graph: Graph
    nodes: dict[int, AnyNode] = field(init=False, default_factory=dict[int, AnyNode])
    types: dict[int, TensorType] = field(init=False)
    same: dict[int, int] = field(init=False)
    ranks: dict[int, tuple[int, float, bytes]] = field(init=False, default_factory=dict[int, tuple[int, float, bytes]])
    known: dict[bytes, int] = field(init=False, default_factory=dict[bytes, int])
    order: list[AnyNode] = field(init=False, default_factory=list[AnyNode])
    readers: dict[int, int] = field(init=False, default_factory=dict[int, int])
    opaque: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.types = dict(self.graph.types)
        self.same = {var: var for var in self.types}
        for node in self.graph.nodes:
            for var in node.operands:
                self.readers[var] = self.readers.get(var, 0) + 1

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
        """The node, reading what has the values of its operands."""
        if all(self.same[var] == var for var in node.operands):
            return node
        outs = {var: var for var in out_vars(node)}
        return type(node).model_construct(**renamed_fields(node, self.same, outs, None, {}, lambda device: device))

    def _enter(self, node: AnyNode, outputs: frozenset[int]) -> None:
        (out,) = out_vars(node)
        rule = _RULES.get(type(node))
        made = node if rule is None else rule(self, node)
        if isinstance(made, int):
            if out not in outputs:
                self.same[out] = made
                return
            made = node
        digest = self._digest(made, out)
        first = self.known.setdefault(digest, out)
        if first != out and out not in outputs:
            self.same[out] = first
            return
        self._add(made, out, digest)

    def _add(self, node: AnyNode, out: int, digest: bytes) -> None:
        depth = 1 + max((self.ranks[var][0] for var in node.operands), default=-1)
        first = min((self.ranks[var][1] for var in node.operands), default=inf)
        self.ranks[out] = (-depth if isinstance(node, ConstScalar | Vconst) else depth, first, digest)
        self.nodes[out] = node
        self.order.append(node)

    def new(self, make: Callable[[int], AnyNode], kind: TensorType) -> int:
        """The var of one more node, or of one that is there and the same."""
        out = max(self.types) + 1
        node = make(out)
        self.types[out] = kind
        digest = self._digest(node, out)
        first = self.known.setdefault(digest, out)
        if first != out:
            del self.types[out]
            return first
        self.same[out] = out
        self._add(node, out, digest)
        return out

    def _enter_opaque(self, node: AnyNode) -> None:
        depth = 1 + max((self.ranks[var][0] for var in node.operands), default=0)
        first = min((self.ranks[var][1] for var in node.operands), default=inf)
        for out in out_vars(node):
            # Two of them are never the same, whatever they are.
            self.ranks[out] = (depth, first, b"opaque %d" % self.opaque)
            self.opaque += 1
        self.order.append(node)

    def _digest(self, node: AnyNode, out: int) -> bytes:
        """Equal for nodes that have the same value, whatever vars are called; -0.0 is not 0.0.

        Symbols keep their names here: two that have the same bounds are not one.
        """
        fields, kind = node.__dict__, self.types[out]
        plain = [fields[name] for name in _PLAIN[type(node)]]
        told = [self.ranks[var][2] for var in node.operands]
        return blake2b(f"{node.node} {plain!r} {kind.shape} {told!r}".encode(), digest_size=16).digest()

    def constant(self, var: int) -> float | None:
        """The number that every element of a var is, where that stands in the graph."""
        node = self.nodes.get(var)
        while isinstance(node, Reshape | Expand):
            node = self.nodes.get(node.in_var)
        if not isinstance(node, ConstScalar) or isinstance(node.value, bool | None):
            return None
        return float(node.value) if isinstance(node.value, str | float) else node.value

    def _living(self) -> Iterable[AnyNode]:
        """The nodes that something reads, or that are more than a value."""
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
        # What followed from two steps by themselves may be a condition of one.
        return self.graph if made.constraints else made


def _permute(spelling: _Spelling, node: Permute) -> Made:
    source = spelling.nodes.get(node.in_var)
    if isinstance(source, Permute):
        axes = tuple(source.axes_permutation[axis] for axis in node.axes_permutation)
        node = node.model_copy(update={"in_var": source.in_var, "axes_permutation": axes})
    return node.in_var if node.axes_permutation == tuple(range(len(node.axes_permutation))) else node


def _reshape(spelling: _Spelling, node: Reshape) -> Made:
    source = spelling.nodes.get(node.in_var)
    if isinstance(source, Reshape):
        node = node.model_copy(update={"in_var": source.in_var})
        source = spelling.nodes.get(node.in_var)
    if node.new_shape == spelling.types[node.in_var].shape:
        return node.in_var
    if isinstance(source, ReduceAxis) and spelling.readers.get(source.out_var) == 1:
        before = spelling.types[source.in_var].shape
        if node.new_shape == tuple(1 if axis in source.axes else dim for axis, dim in enumerate(before)):
            # The metadata of the result says that the reduced axes stay.
            return source.model_copy(update={"out_var": node.out_var})
    return node


def _expand(spelling: _Spelling, node: Expand) -> Made:
    source = spelling.nodes.get(node.in_var)
    if isinstance(source, Expand):
        node = node.model_copy(update={"in_var": source.in_var})
    return node.in_var if node.new_target_shape == spelling.types[node.in_var].shape else node


def _cast(spelling: _Spelling, node: Cast) -> Made:
    return node.in_var if spelling.types[node.in_var].dtype is node.dtype else node


def _reduce(spelling: _Spelling, node: ReduceAxis) -> Made:
    """Windows of one element along an axis are none: the axis goes, from the view and from what is reduced."""
    source, result = spelling.nodes.get(node.in_var), spelling.types[node.out_var]
    if not isinstance(source, View) or len(source.shape_tracker.views) != 1 or spelling.readers[node.in_var] != 1:
        return node
    (view,), kind = source.shape_tracker.views, spelling.types[node.in_var]
    if view.mask is not None or len(result.shape) == len(view.shape):
        return node
    kept = [axis for axis, dim in enumerate(view.shape) if dim != 1 or axis not in node.axes]
    axes = tuple(position for position, axis in enumerate(kept) if axis in node.axes)
    if len(kept) == len(view.shape) or not axes:
        return node
    shape = tuple(view.shape[axis] for axis in kept)
    spec = ViewSpec.model_construct(
        shape=shape, strides=tuple(view.strides[axis] for axis in kept), offset=view.offset, mask=None
    )
    tracker = ShapeTracker.model_construct(views=(spec,), shape=shape)
    smaller = spelling.new(
        lambda out: source.model_copy(update={"shape_tracker": tracker, "out_var": out}),
        TensorType(kind.dtype, shape, None),
    )
    return node.model_copy(update={"in_var": smaller, "axes": axes})


def _binop(spelling: _Spelling, node: Binop) -> Made:
    result, dtype = spelling.types[node.out_var], spelling.types[node.a_var].dtype
    for var, other in ((node.a_var, node.b_var), (node.b_var, node.a_var)):
        neutral = _NEUTRAL.get(node.op)
        value = spelling.constant(other)
        if neutral is None or value is None or spelling.types[var] != result or (var == node.b_var and not neutral[1]):
            continue
        if neutral[0](value, dtype):
            return var
    if node.op in _SWAPPED:
        a, b = sorted((node.a_var, node.b_var), key=lambda var: _operand_order(spelling.ranks[var]))
        if a != node.a_var:
            return node.model_copy(update={"a_var": a, "b_var": b})
    return node


def _operand_order(rank: tuple[int, float, bytes]) -> tuple[int, float, bytes]:
    """What is computed from more comes first, then what is computed from an earlier input; constants are last."""
    depth, position, digest = rank
    return -depth, position, digest


def _is_one(value: float, dtype: DType) -> bool:
    return value == 1


def _is_no_summand(value: float, dtype: DType) -> bool:
    # A sum of -0 and +0 is +0.
    return dtype.is_integer and value == 0


def _is_least(value: float, dtype: DType) -> bool:
    return value == (dtype.min if dtype.is_integer else -inf)


def _is_greatest(value: float, dtype: DType) -> bool:
    return value == (dtype.max if dtype.is_integer else inf)


_NEUTRAL: Final[Mapping[BinopKind, tuple[Callable[[float, DType], bool], bool]]] = {
    BinopKind.MUL: (_is_one, True),
    BinopKind.FDIV: (_is_one, False),
    BinopKind.ADD: (_is_no_summand, True),
    BinopKind.SUB: (_is_no_summand, False),
    BinopKind.MAX: (_is_least, True),
    BinopKind.MIN: (_is_greatest, True),
}
"""With which operand an operation gives the other, and whether it may be the first."""

_RULES: Final[Mapping[type[AnyNode], Callable[[_Spelling, Any], Made]]] = {
    Permute: _permute,
    Reshape: _reshape,
    Expand: _expand,
    Cast: _cast,
    ReduceAxis: _reduce,
    Binop: _binop,
}
