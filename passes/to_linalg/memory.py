"""Kernel operands in memory: element types, strided views, loads and stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialect.mlir import arith, ir, memref
from passes.scalar import mlir_scalar
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, sub

from .index_emission import IndexEmitter


def stored_type(dtype: DType) -> ir.Type:
    """The element type of a buffer: a bool takes a byte, everything else is as in registers."""
    return ir.IntegerType.get_signless(8) if dtype.is_bool else mlir_scalar(dtype)


def from_memory(dtype: DType, value: ir.Value) -> ir.Value:
    """The scalar of a stored element; any non-zero byte is a true bool."""
    if not dtype.is_bool:
        return value
    return arith.cmpi(arith.CmpIPredicate.ne, value, arith.constant(value.type, 0))


def to_memory(dtype: DType, value: ir.Value) -> ir.Value:
    """The element to store for a scalar; a bool is stored as 0 or 1."""
    return arith.extui(stored_type(dtype), value) if dtype.is_bool else value


def strided_view(
    base: ir.Value, offset: Dim, extents: Sequence[Dim], strides: Sequence[Dim], index: IndexEmitter
) -> ir.Value:
    """A view of `base` whose element `i` is at `offset + sum(i * stride)`, all in elements."""
    dynamic = ir.ShapedType.get_dynamic_size()
    dynamic_stride = ir.ShapedType.get_dynamic_stride_or_offset()
    static_offset = offset if isinstance(offset, int) else dynamic_stride
    static_sizes = [extent if isinstance(extent, int) else dynamic for extent in extents]
    static_strides = [stride if isinstance(stride, int) else dynamic_stride for stride in strides]
    layout = ir.StridedLayoutAttr.get(static_offset, static_strides)
    element = ir.MemRefType(base.type).element_type
    return memref.ReinterpretCastOp(
        ir.MemRefType.get(static_sizes, element, layout),
        base,
        [] if isinstance(offset, int) else [index(offset)],
        [index(extent) for extent in extents if not isinstance(extent, int)],
        [index(stride) for stride in strides if not isinstance(stride, int)],
        [static_offset],
        static_sizes,
        static_strides,
    ).result


def load(dtype: DType, base: ir.Value, address: Dim, index: IndexEmitter) -> ir.Value:
    """The scalar at `address` elements from the start of `base`."""
    return from_memory(dtype, memref.load(strided_view(base, address, (), (), index), []))


def store(dtype: DType, value: ir.Value, base: ir.Value, address: Dim, index: IndexEmitter) -> None:
    """Store a scalar at `address` elements from the start of `base`."""
    memref.store(to_memory(dtype, value), strided_view(base, address, (), (), index), [])


@dataclass(frozen=True, slots=True)
class Memory:
    """The operands of a kernel as bare pointers, and where in each the current row starts.

    `row_starts` has an entry for the operands that hold one row only. `entry` is the first block of the function.
    """

    bases: Sequence[ir.Value]
    row_starts: Mapping[int, Dim]
    entry: ir.Block

    def address(self, operand: int, address: Dim) -> Dim:
        """Where the element that has `address` in the whole operand is in its memory."""
        return sub(address, self.row_starts.get(operand, 0))

    def register(self, dtype: DType) -> ir.Value:
        """A scalar variable of the register type of `dtype`."""
        return register(self.entry, mlir_scalar(dtype))


def register(entry: ir.Block, element: ir.Type) -> ir.Value:
    """A rank-0 stack variable in the block `entry`: in a loop it would grow the stack in every iteration."""
    with ir.InsertionPoint.at_block_begin(entry):
        return memref.AllocaOp(ir.MemRefType.get([], element), [], []).result
