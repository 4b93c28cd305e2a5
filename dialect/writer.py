"""Append ops to a block; every type, attribute and location is created once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorkiln.types import TensorType

from .locations import node_location
from .mlir import ir
from .module import NODE
from .operation import KilnOp
from .types import tensor_type


class Writer:
    """Writes ops at the end of `block` for one node of the graph at a time."""

    def __init__(self, block: ir.Block) -> None:
        self._create = ir.Operation.create
        self._end = ir.InsertionPoint(block)
        self._int64 = ir.IntegerType.get_signless(64)
        self._types: dict[tuple[Any, ...], ir.Type] = {}
        self._attributes: dict[tuple[Any, Any], ir.Attribute] = {}
        self.at(0)

    def at(self, node: int) -> None:
        """Write the following ops for the node with this index."""
        self.node = node
        self._location = node_location(node)
        self._index = ir.IntegerAttr.get(self._int64, node)

    def write(
        self,
        op: type[KilnOp],
        operands: Sequence[ir.Value],
        result: TensorType | None,
        fields: Mapping[str, Any] | None = None,
    ) -> Any:
        """Append an op with one Python value per field; returns its result, or None if `result` is None."""
        attributes: dict[str, ir.Attribute] = {NODE: self._index}
        for member, value in (fields or {}).items():
            attributes[member] = self._attribute(op, member, value, result)
        op.add_segments(attributes, operands)
        results = () if result is None else (self._type(result),)
        written = self._create(op.OPERATION_NAME, results, operands, attributes, loc=self._location, ip=self._end)
        return None if result is None else written.result

    def _attribute(self, op: type[KilnOp], member: str, value: Any, result: TensorType | None) -> ir.Attribute:
        field = op.fields[member]
        if not field.is_shareable:
            return op.encode(member, value, result)
        key = (field, value)
        known = self._attributes.get(key)
        if known is None:
            known = self._attributes[key] = op.encode(member, value, result)
        return known

    def _type(self, tensor: TensorType) -> ir.Type:
        key = (tensor.dtype, tensor.shape)
        known = self._types.get(key)
        if known is None:
            known = self._types[key] = tensor_type(tensor)
        return known
