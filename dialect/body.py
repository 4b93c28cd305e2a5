"""The function body under construction for a graph: a block to append to, and the current value of every var."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorkiln.dtypes import DType
from tensorkiln.nodes import Buffer, BufferView
from tensorkiln.types import TensorType

from .memory import BufferOp, BufferViewOp
from .mlir import ir
from .operation import KilnOp
from .splice import splice
from .storage import Storage
from .writer import Writer


class Body:
    """The state of reading a graph; `at` moves it from node to node."""

    def __init__(self, types: Mapping[int, TensorType], block: ir.Block) -> None:
        self.types = types
        self.writer = Writer(block)
        self.index = 0
        self._storage = Storage()
        self._buffers: dict[int, tuple[Buffer, int]] = {}
        self._buffer_views: dict[int, tuple[BufferView, int]] = {}

    def at(self, index: int) -> None:
        """Write the following ops for the node with this index."""
        self.index = index
        self.writer.at(index)

    def read(self, var: int) -> ir.Value:
        """The current value of a var."""
        return self._storage.read(var, self)

    def read_all(self, variables: Sequence[int]) -> list[ir.Value]:
        """The current values of the vars."""
        return [self._storage.read(var, self) for var in variables]

    def define(self, var: int, value: ir.Value) -> None:
        """Give a var its first or next value."""
        self._storage.write(var, value, self)

    def write(
        self, op: type[KilnOp], operands: Sequence[ir.Value], out_var: int, fields: Mapping[str, Any] | None = None
    ) -> None:
        """Append an op and give its result to `out_var`."""
        self._storage.write(out_var, self.writer.write(op, operands, self.types[out_var], fields), self)

    def declare_buffer(self, node: Buffer) -> None:
        """Make the var of `node` a storage from here on, unless it is an input, which already has contents."""
        self._buffers[node.out_var] = (node, self.index)

    def declare_view(self, node: BufferView) -> None:
        """Make the var of `node` share the storage of its buffer from here on."""
        self._buffer_views[node.out_var] = (node, self.index)
        self._storage.share(node.out_var, node.buffer_var)

    def is_view(self, var: int) -> bool:
        """Whether a var shares the storage of another var: its value is a `kiln.buffer_view` of its own."""
        return var in self._buffer_views

    def contents(self, var: int) -> ir.Value:
        node, index = self._buffers[var]
        fields = {"size_in_elements": node.size_in_elements, "device": node.device}
        return self._write_for(index, BufferOp, (), self.types[var], fields)

    def view(self, var: int, base: ir.Value) -> ir.Value:
        node, _ = self._buffer_views[var]
        if self.types[var].dtype is not DType.BOOL:
            base = self._stored(node.buffer_var, base)
        return self._write_view(var, base, self.types[var])

    def _stored(self, var: int, value: ir.Value) -> ir.Value:
        """The stored bytes of a var, where its bool `value` lacks them: a bool is 0 or 1, whatever its byte is."""
        if self.types[var].dtype is not DType.BOOL or var not in self._buffer_views:
            return value
        node, _ = self._buffer_views[var]
        base = self._stored(node.buffer_var, self.read(node.buffer_var))
        return self._write_view(var, base, TensorType(DType.UINT8, self.types[var].shape))

    def _write_view(self, var: int, base: ir.Value, kind: TensorType) -> ir.Value:
        node, index = self._buffer_views[var]
        return self._write_for(index, BufferViewOp, (base,), kind, {"size": node.size, "offset": node.offset})

    def splice(self, var: int, base: ir.Value, view: ir.Value) -> ir.Value:
        node, index = self._buffer_views[var]
        return splice(self.writer, base, view, node, index)

    def _write_for(
        self, index: int, op: type[KilnOp], operands: Sequence[ir.Value], kind: TensorType, fields: Mapping[str, Any]
    ) -> ir.Value:
        """Write an op for the earlier node `index`."""
        self.writer.at(index)
        value = self.writer.write(op, operands, kind, fields)
        self.writer.at(self.index)
        return value
