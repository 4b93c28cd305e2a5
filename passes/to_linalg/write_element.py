"""Write the scalar program of one element as the body of a `linalg.generic` on tensors."""

from __future__ import annotations

from collections.abc import Mapping

from dialect.mlir import arith, ir, scf, tensor
from passes.scalar import mlir_scalar
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
from ..scalar.registers import constant, from_memory, register_type, to_memory, zero
from .scalar_ops import Operation, ScalarFunctions, operation_of
from .write_index import IndexWriter


def loaded(dtype: DType, element: ir.Value) -> ir.Value:
    """An element of a tensor in its register type."""
    return element if element.type == register_type(dtype) else from_memory(dtype, element)


def stored(dtype: DType, value: ir.Value, element: ir.Type) -> ir.Value:
    """A register value as an element of a tensor."""
    return value if value.type == element else to_memory(dtype, value)


class ElementWriter:
    """Writes nodes at the current insertion point, each once.

    `tensors` are the operands by number; `at_hand` has the loads that are operands of the generic, by `id`.
    """

    def __init__(
        self,
        nodes: Interner,
        index: IndexWriter,
        tensors: Mapping[int, ir.Value],
        at_hand: Mapping[int, ir.Value],
        scalars: ScalarFunctions,
    ) -> None:
        self.nodes, self.index, self.tensors, self.scalars = nodes, index, tensors, scalars
        self._values = dict(at_hand)
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
            case IndexValue(dtype=dtype, index=index):
                return self._index_value(dtype, self._index(index))
            case Load():
                return self._load(node)
            case Apply():
                return self.scalars(operation_of(node), [self(arg) for arg in node.args])
            case Guard(conditions=conditions, value=value):
                return arith.select(self._all(conditions), self(value), zero(node.dtype))
            case Choose(conditions=conditions, first=first, second=second):
                return arith.select(self._all(conditions), self(first), self(second))

    def _index_value(self, dtype: DType, index: ir.Value) -> ir.Value:
        if dtype.is_integer:
            return arith.index_cast(mlir_scalar(dtype), index)
        wide = arith.index_cast(ir.IntegerType.get_signless(64), index)
        return self.scalars(Operation("cast", (DType.INT64,), dtype, (DType.INT64,)), [wide])

    def _index(self, index: Dim) -> ir.Value:
        for name in sorted(free_symbols(index)):
            if name in self.nodes.dynamic:
                self._position(name)
        return self.index(index)

    def _position(self, name: str) -> ir.Value:
        """A run-time integer as an index, extended by its sign; a uint64 beyond int64 becomes negative."""
        names = self.index.names
        if name not in names:
            node = self.nodes.dynamic[name]
            cast = arith.index_cast if node.dtype.is_signed else arith.index_castui
            names[name] = cast(ir.IndexType.get(), self(node))
        return names[name]

    def _load(self, node: Load) -> ir.Value:
        source = self.tensors[node.operand]
        if not node.conditions:
            return loaded(node.dtype, tensor.ExtractOp(source, [self._index(at) for at in node.index]).result)
        condition, places = self._all(node.conditions), [self._index(at) for at in node.index]
        branch = scf.IfOp(condition, [register_type(node.dtype)], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([loaded(node.dtype, tensor.ExtractOp(source, places).result)])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([zero(node.dtype)])
        return branch.results[0]

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
            case InRange(value=value, extent=extent):
                # A negative index is a huge unsigned one.
                position = self._position(self.nodes.dynamic_name(value, extent))
                return arith.cmpi(arith.CmpIPredicate.ult, position, self._index(extent))
            case IsTrue(value=value):
                return self(value)
            case _:
                return arith.cmpi(arith.CmpIPredicate.sge, self._index(condition), self._index(0))
