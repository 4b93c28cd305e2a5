"""Write the nodes of a scalar program as operations, each once: what its forms on tensors and on memory share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from dialect.mlir import arith, ir
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, Expr, free_symbols

from ..loops.scalar_dag import (
    Apply,
    Choose,
    Condition,
    Constant,
    Guard,
    IndexValue,
    InRange,
    Interner,
    IsTrue,
    Load,
    Node,
)
from ..origins import at_node
from ..scalar.registers import constant, zero


class Indices(Protocol):
    """Writes dims; `names` has the value of every name."""

    names: dict[str, ir.Value]

    def __call__(self, dim: Dim, /) -> ir.Value: ...


def as_index(dtype: DType, value: ir.Value) -> ir.Value:
    """An integer scalar as an index, by its sign; a uint64 beyond the range of int64 becomes negative."""
    return (arith.index_cast if dtype.is_signed else arith.index_castui)(ir.IndexType.get(), value)


class NodeWriter(ABC):
    """Writes nodes at the current insertion point. `values` has known values of nodes, by `id`."""

    def __init__(self, nodes: Interner, index: Indices, values: Mapping[int, ir.Value]) -> None:
        self.nodes, self._indices = nodes, index
        self._values = dict(values)
        self._conditions: dict[int | Dim, ir.Value] = {}

    def __call__(self, node: Node) -> ir.Value:
        """The value of `node`, in its register type."""
        value = self._values.get(id(node))
        if value is None:
            with at_node(self.nodes, node):
                value = self._values[id(node)] = self._write(node)
        return value

    def _write(self, node: Node) -> ir.Value:
        match node:
            case Constant(dtype=dtype, value=literal):
                return constant(dtype, literal)
            case IndexValue():
                return self._index_value(node)
            case Load():
                return self._load(node)
            case Apply():
                return self._apply(node)
            case Guard(conditions=conditions, value=value):
                return arith.select(self._all(conditions), self(value), self._zero(node.dtype))
            case Choose(conditions=conditions, first=first, second=second):
                return arith.select(self._all(conditions), self(first), self(second))

    @abstractmethod
    def _index_value(self, node: IndexValue) -> ir.Value: ...

    @abstractmethod
    def _load(self, node: Load) -> ir.Value: ...

    @abstractmethod
    def _apply(self, node: Apply) -> ir.Value: ...

    def _place(self, condition: InRange) -> ir.Value:
        """The index that the condition compares."""
        return as_index(condition.value.dtype, self(condition.value))

    def _zero(self, dtype: DType) -> ir.Value:
        return zero(dtype)

    def _index(self, index: Dim) -> ir.Value:
        for name in sorted(free_symbols(index)):
            if name in self.nodes.dynamic:
                self._position(name)
        return self._indices(index)

    def _position(self, name: str) -> ir.Value:
        """A run-time integer as an index."""
        names = self._indices.names
        if name not in names:
            node = self.nodes.dynamic[name]
            names[name] = as_index(node.dtype, self(node))
        return names[name]

    def _all(self, conditions: tuple[Condition, ...]) -> ir.Value:
        value = self._condition(conditions[0])
        for condition in conditions[1:]:
            value = arith.andi(value, self._condition(condition))
        return value

    def _condition(self, condition: Condition) -> ir.Value:
        key = condition if isinstance(condition, int | Expr) else id(condition)
        value = self._conditions.get(key)
        if value is None:
            value = self._conditions[key] = self._write_condition(condition)
        return value

    def _write_condition(self, condition: Condition) -> ir.Value:
        match condition:
            case InRange(extent=extent):
                # A negative index is a huge unsigned one.
                return arith.cmpi(arith.CmpIPredicate.ult, self._place(condition), self._index(extent))
            case IsTrue(value=value):
                return self(value)
            case _:
                return arith.cmpi(arith.CmpIPredicate.sge, self._index(condition), self._indices(0))
