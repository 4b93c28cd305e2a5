"""Trace one element of a value back to the loads that it needs.

Movement nodes become index arithmetic; computations become scalar nodes. Tracing stops at values in buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from passes.values import Value
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.expr import Dim, Expr, free_symbols, product

from ..loops.domain import Domain, traced_value
from ..loops.index_space import Index, IndexSpace
from ..loops.scalar_dag import Condition, Constant, Interner, Load, Node

Conditions: TypeAlias = tuple[Condition, ...]
Trace: TypeAlias = "Callable[[Tracer, Value, Index, Conditions], Node]"


class Tracer:
    """Builds the scalar program of values over one index space.

    `operands` maps the values in buffers to their positions among the kernel's operands. `traces` has one function per
    op kind. With `records`, nodes are marked with the positions of the values that they compute.
    """

    def __init__(
        self,
        space: IndexSpace,
        operands: Mapping[Value, int],
        traces: Mapping[str, Trace],
        nodes: Interner,
        *,
        records: bool = False,
    ) -> None:
        self.records = records
        self.space = space
        self.operands = operands
        self.nodes = nodes
        self._traces = traces
        self._memo: dict[tuple[object, ...], Node] = {}

    def element(self, value: Value, index: Index, conditions: Conditions = ()) -> Node:
        """The element of `value` at `index`, needed only where the conditions hold; zero if the value is empty."""
        if 0 in value.shape:
            return self.nodes.zero(value.dtype)
        key = (value, index, *(c if isinstance(c, int | Expr) else id(c) for c in conditions))
        node = self._memo.get(key)
        if node is None:
            node = self._memo[key] = self._element(value, index, conditions)
        return node

    def _element(self, value: Value, index: Index, conditions: Conditions) -> Node:
        operand = self.operands.get(value)
        if operand is None:
            return self.define(value, index, conditions)
        address = self.space.flatten(index, value.shape)
        if conditions:
            # Conditions about other loops only: those of pixels are not about a factor of a channel.
            names = free_symbols(address)
            is_apart = all(isinstance(each, int | Expr) and names.isdisjoint(free_symbols(each)) for each in conditions)
            if is_apart and self.space.is_within(address, product(value.shape)):
                # It can be read everywhere, in vectors too; `guard` makes it zero where it has to be.
                conditions = ()
        return self.nodes.load(value.dtype, operand, address, conditions, index)

    def define(self, value: Value, index: Index, conditions: Conditions = ()) -> Node:
        """The element of `value` computed from its own operands, even if the value lives in a buffer."""
        trace = self._traces.get(value.kind)
        if trace is None:
            raise UnsupportedGraphError(f"{value.kind} cannot be computed element by element", pointers=[value.pointer])
        if not self.records:
            return trace(self, value, index, conditions)
        with self.nodes.marked((value.position,)):
            return trace(self, value, index, conditions)

    def computed(self, root: Value, domain: Domain) -> Node:
        """The element that the loops of `domain` compute for `root`: its own, or that of the operand it reduces."""
        value = traced_value(root)
        index = domain.index(value.shape)
        return self.element(value, index) if root.kind == "reduce_axis" else self.define(value, index)

    def flat_element(self, value: Value, flat: Dim, conditions: Conditions = ()) -> Node:
        """The element at the row-major position `flat`."""
        operand = self.operands.get(value)
        if operand is not None and 0 not in value.shape:
            return self.nodes.load(value.dtype, operand, flat, conditions, self.space.unflatten(flat, value.shape))
        return self.element(value, self.space.unflatten(flat, value.shape), conditions)

    def operand(self, value: Value, index: Index, conditions: Conditions) -> Node:
        """The element of an operand that may be a rank-0 tensor among tensors."""
        return self.element(value, index if value.shape else (), conditions)

    def restrict(self, conditions: Conditions, *wanted: Condition) -> tuple[Conditions, Conditions] | None:
        """`(conditions + wanted, wanted)` without those known to hold; None if one is known to fail."""
        kept: list[Condition] = []
        for condition in wanted:
            if isinstance(condition, int | Expr):
                if self.space.is_nonnegative(condition):
                    continue
                if self.space.is_nonnegative(expr.sub(-1, condition)):
                    return None
            if condition not in kept:
                kept.append(condition)
        added = tuple(condition for condition in kept if condition not in conditions)
        return conditions + added, tuple(kept)

    def within(self, value: Value, index: Index, conditions: Conditions, *wanted: Condition) -> Node:
        """`value` at `index` if all the wanted conditions hold, else zero."""
        return self.where(value.dtype, conditions, wanted, lambda inner: self.element(value, index, inner))

    def where(
        self, dtype: DType, conditions: Conditions, wanted: Sequence[Condition], element: Callable[[Conditions], Node]
    ) -> Node:
        """What `element` makes under all of the conditions, if the wanted ones hold, else zero."""
        restricted = self.restrict(conditions, *wanted)
        if restricted is None:
            return self.nodes.zero(dtype)
        inner, kept = restricted
        return self.guard(kept, element(inner))

    def guard(self, conditions: Conditions, node: Node) -> Node:
        """Zero unless the conditions hold; a zero stays as it is, and a load takes them on."""
        if isinstance(node, Load):
            added = tuple(condition for condition in conditions if condition not in node.conditions)
            return self.nodes.load(node.dtype, node.operand, node.address, node.conditions + added, node.index)
        if isinstance(node, Constant) and node is self.nodes.zero(node.dtype):
            return node
        return self.nodes.guard(conditions, node)


def between(index: Dim, low: Dim, high: Dim) -> tuple[Dim, Dim]:
    """The conditions that `low <= index < high`."""
    return expr.sub(index, low), expr.sub(expr.sub(high, 1), index)
