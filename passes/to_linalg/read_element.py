"""The body of a `linalg.generic` read back as the scalar program of one element: the inverse of `write_element`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dialect.mlir import arith, ir
from dialect.types import dtype_of
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from ..loops.index_space import IndexSpace
from ..loops.scalar_dag import Apply, Condition, Interner, Node
from ..values import Value
from .read_index import IndexReader
from .scalar_ops import operation_at, operation_of_op

_UNSIGNED_BELOW = arith.CmpIPredicate.ult.value


@dataclass(slots=True)
class ElementReader:
    """Reads the operations of a body, in order.

    `tensors` has the operand number and type of each tensor, `functions` the functions of scalar operations. `computed`
    are the results of scalar operations, in the order of the body. `values` has the node of each value; a tensor
    element and its register value have the same one.
    """

    space: IndexSpace
    nodes: Interner
    index: IndexReader
    tensors: Mapping[ir.Value, tuple[int, Value]]
    functions: Mapping[str, ir.Operation]
    computed: list[Node] = field(default_factory=list[Node])
    values: dict[ir.Value, Node] = field(default_factory=dict[ir.Value, Node])
    _conditions: dict[ir.Value, tuple[Condition, ...]] = field(default_factory=dict[ir.Value, "tuple[Condition, ...]"])

    def signed_as(self, node: Node, *, signed: bool) -> Node:
        """The same bits as a signed or unsigned integer, which MLIR types do not distinguish."""
        if node.dtype.is_signed == signed:
            return node
        dtype = DType(f"{'' if signed else 'u'}int{node.dtype.bits}")
        return self.nodes.apply(dtype, "bitcast", (node.dtype,), node)

    def stored(self, value: ir.Value, dtype: DType) -> Node:
        """The node stored as an element of `dtype`; for a bool, the node behind the extension to a byte."""
        node = self.values[value]
        if dtype.is_bool and not node.dtype.is_bool:
            assert isinstance(node, Apply), "a bool is stored as its extension to a byte"
            return node.args[0]
        return node

    def read(self, operation: Any) -> None:
        """Read the next operation of the body."""
        name = operation.name
        if name in ("linalg.yield", "scf.yield"):
            return
        (result,) = operation.results
        if isinstance(result.type, ir.IndexType):
            self._read_index(operation, result)
        elif name == "arith.constant":
            self.values[result] = self._constant(operation, result)
        elif name == "tensor.extract":
            self.values[result] = self.element(operation, ())
        elif name == "scf.if":
            condition, *_ = operation.operands
            read = operation.regions[0].blocks[0].operations[0]
            self.values[result] = self.element(read.operation, self._all(condition))
        elif name == "arith.index_cast":
            self.values[result] = self.nodes.index_value(dtype_of(result.type), self.index(operation.operands[0]))
        elif not self._read_condition(operation, result) and not self._read_conversion(operation, result):
            self.values[result] = self._compute(operation, result)
            self.computed.append(self.values[result])

    def element(self, operation: Any, conditions: tuple[Condition, ...]) -> Node:
        """The load of a `tensor.extract`, under conditions."""
        source, *places = operation.operands
        return self.load(source, tuple(map(self.index, places)), conditions)

    def load(self, source: ir.Value, index: tuple[Dim, ...], conditions: tuple[Condition, ...] = ()) -> Node:
        """The element of a tensor at `index`."""
        number, value = self.tensors[source]
        address = self.space.flatten(index, value.shape)
        return self.nodes.load(value.dtype, number, address, conditions, index)

    def _read_index(self, operation: Any, result: ir.Value) -> None:
        """Name an index that is read from data; other indices are read where they are used."""
        if operation.name in ("arith.index_cast", "arith.index_castui"):
            node = self.signed_as(self.values[operation.operands[0]], signed=operation.name == "arith.index_cast")
            users = [use.owner.operation for use in result.uses]
            extent = next(self.index(user.operands[1]) for user in users if _is_in_range(user))
            self.index.names[result] = self.space.add(self.nodes.dynamic_name(node, extent), extent)

    def _constant(self, operation: Any, result: ir.Value) -> Node:
        dtype, attribute = dtype_of(result.type), operation.attributes["value"]
        if dtype.is_float:
            return self.nodes.constant(dtype, ir.FloatAttr(attribute).value)
        value = ir.IntegerAttr(attribute).value
        return self.nodes.constant(dtype, bool(value) if dtype.is_bool else value)

    def _read_condition(self, operation: Any, result: ir.Value) -> bool:
        """Read a condition on indices, or a conjunction or select with one; False for any other operation."""
        if operation.name == "arith.cmpi" and isinstance(operation.operands[0].type, ir.IndexType):
            left, right = operation.operands
            if _is_in_range(operation):
                (name,) = expr.free_symbols(self.index(left))
                condition: Condition = self.nodes.in_range(self.nodes.dynamic[name], self.index(right))
            else:
                condition = expr.sub(self.index(left), self.index(right))
            self._conditions[result] = (condition,)
            return True
        if operation.name == "arith.andi" and any(operand in self._conditions for operand in operation.operands):
            self._conditions[result] = tuple(part for operand in operation.operands for part in self._all(operand))
            return True
        if operation.name == "arith.select" and operation.operands[0] in self._conditions:
            self.values[result] = self._select(operation)
            return True
        return False

    def _all(self, value: ir.Value) -> tuple[Condition, ...]:
        return self._conditions.get(value) or (self.nodes.is_true(self.values[value]),)

    def _select(self, operation: Any) -> Node:
        condition, first, second = operation.operands
        here, elsewhere = self.values[first], self.values[second]
        conditions = self._conditions[condition]
        if elsewhere is self.nodes.zero(elsewhere.dtype):
            return self.nodes.guard(conditions, here)
        return self.nodes.choose(conditions, here, elsewhere)

    def _read_conversion(self, operation: Any, result: ir.Value) -> bool:
        """Read a conversion between an element and its register value, which are one node; False for any other
        operation.
        """
        (value, *rest) = operation.operands
        node = self.values.get(value)
        if node is None:
            return False
        is_same = (operation.name == "arith.bitcast" and node.dtype.is_half) or (
            operation.name == "arith.cmpi" and node.dtype.is_bool and value.type != result.type and bool(rest)
        )
        if is_same:
            self.values[result] = node
        return is_same

    def _compute(self, operation: Any, result: ir.Value) -> Node:
        args = [self.values[operand] for operand in operation.operands]
        if operation.name == "func.call":
            callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
            applied = operation_at(self.functions[callee])
        else:
            applied = operation_of_op(operation, [arg.dtype for arg in args], dtype_of(result.type))
        return self.nodes.apply(applied.dtype, applied.op, applied.attributes, *args)


def _is_in_range(operation: Any) -> bool:
    """Whether the operation compares an index read from data with an extent."""
    if operation.name != "arith.cmpi":
        return False
    return ir.IntegerAttr(operation.attributes["predicate"]).value == _UNSIGNED_BELOW
