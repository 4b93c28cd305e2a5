"""Write the scalar program of one element as the body of a `linalg.generic` on tensors."""

from __future__ import annotations

from collections.abc import Mapping

from dialect.mlir import arith, ir, scf, tensor
from passes.scalar import mlir_scalar
from tensorkiln.dtypes import DType

from ..loops.scalar_dag import Apply, IndexValue, InRange, Interner, Load
from ..scalar.registers import from_memory, register_type, to_memory, zero
from .node_writer import NodeWriter
from .scalar_ops import Operation, ScalarFunctions, operation_of
from .write_index import IndexWriter


def stored(dtype: DType, value: ir.Value, element: ir.Type) -> ir.Value:
    """A register value as an element of a tensor."""
    return value if value.type == element else to_memory(dtype, value)


class ElementWriter(NodeWriter):
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
        super().__init__(nodes, index, at_hand)
        self.tensors, self.scalars = tensors, scalars

    def _apply(self, node: Apply) -> ir.Value:
        return self.scalars(operation_of(node), [self(arg) for arg in node.args])

    def _index_value(self, node: IndexValue) -> ir.Value:
        index, dtype = self._index(node.index), node.dtype
        if dtype.is_integer:
            return arith.index_cast(mlir_scalar(dtype), index)
        wide = arith.index_cast(ir.IntegerType.get_signless(64), index)
        return self.scalars(Operation("cast", (DType.INT64,), dtype, (DType.INT64,)), [wide])

    def _place(self, condition: InRange) -> ir.Value:
        return self._position(self.nodes.dynamic_name(condition.value, condition.extent))

    def _load(self, node: Load) -> ir.Value:
        source = self.tensors[node.operand]
        if not node.conditions:
            return from_memory(node.dtype, tensor.ExtractOp(source, [self._index(at) for at in node.index]).result)
        condition, places = self._all(node.conditions), [self._index(at) for at in node.index]
        branch = scf.IfOp(condition, [register_type(node.dtype)], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([from_memory(node.dtype, tensor.ExtractOp(source, places).result)])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([zero(node.dtype)])
        return branch.results[0]
