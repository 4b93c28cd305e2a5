"""Kernel operands in memory: element types, strided views, loads and stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dialect.mlir import ir, memref
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, sub

from ..loops.body import Stage, Store
from ..scalar.registers import from_memory, to_memory
from .index_emission import IndexEmitter

CACHE_LINE: Final = 64
"""Bytes of a cache line."""
NEAREST_CACHE: Final = 3
SECOND_CACHE: Final = 1
"""Localities of LLVM's prefetch: for data that is used next, and for data that is used once, later."""


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
    source = ir.MemRefType(base.type)
    return memref.ReinterpretCastOp(
        ir.MemRefType.get(static_sizes, source.element_type, layout, source.memory_space),
        base,
        [] if isinstance(offset, int) else [index(offset)],
        [index(extent) for extent in extents if not isinstance(extent, int)],
        [index(stride) for stride in strides if not isinstance(stride, int)],
        [static_offset],
        static_sizes,
        static_strides,
    ).result


def prefetch(view: ir.Value, locality: int, index: IndexEmitter, *, is_written: bool = False) -> None:
    """Prefetch the cache line at the start of a vector, which may be out of bounds."""
    memref.PrefetchOp(view, [index(0)], is_written, locality, True)


def load(dtype: DType, base: ir.Value, address: Dim, index: IndexEmitter) -> ir.Value:
    """The value at `address` elements from the start of `base`."""
    return from_memory(dtype, memref.load(strided_view(base, address, (), (), index), []))


def store(dtype: DType, value: ir.Value, base: ir.Value, address: Dim, index: IndexEmitter) -> None:
    """Store a value at `address` elements from the start of `base`."""
    memref.store(to_memory(dtype, value), strided_view(base, address, (), (), index), [])


@dataclass(frozen=True, slots=True)
class Memory:
    """The operands of a kernel in memory, as bare pointers, and where the current row starts in each.

    An operand without a base has no memory, and addressing it is an error. `row_starts` has an entry for each operand
    that holds one row only. `entry` is the first block of the function. Operands in `at_hand` are read only at the
    current point, at the given address.
    """

    bases: Mapping[int, ir.Value]
    row_starts: Mapping[int, Dim]
    entry: ir.Block
    at_hand: Mapping[int, Dim] = field(default_factory=dict[int, Dim])

    def address(self, operand: int, address: Dim) -> Dim:
        """The address in memory of the element at `address` in the whole operand."""
        if operand in self.at_hand:
            return self.at_hand[operand]
        return sub(address, self.row_starts.get(operand, 0))

    def store(self, stage: Stage, entry: Store, value: ir.Value, index: IndexEmitter) -> None:
        """Store what a stage has computed for one of its roots at this point."""
        address = self.address(entry.operand, stage.domain.address)
        store(entry.root.dtype, value, self.bases[entry.operand], address, index)


def register(entry: ir.Block, element: ir.Type) -> ir.Value:
    """A rank-0 stack variable in the block `entry`; inside a loop it would grow the stack in every iteration."""
    with ir.InsertionPoint.at_block_begin(entry):
        return memref.AllocaOp(ir.MemRefType.get([], element), [], []).result
