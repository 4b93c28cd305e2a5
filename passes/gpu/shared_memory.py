"""The shared arrays of a work-group: separate symbols if all sizes are constant, else parts of one dynamic block.

Never both: the assembler would leave a gap of unknown size between separate arrays and the block.
"""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import ir, memref
from passes.attributes import encode
from passes.emit.index_emission import IndexEmitter
from passes.scalar.registers import stored_type
from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.schedule import SharedArray

from .machine import VECTOR_BYTES

SPACE = 3
"""The number of the shared address space in LLVM's NVPTX back end."""
DYNAMIC = "dynamic_shared_memory"
"""The symbol of the block whose size is given at launch."""


def static_bytes(arrays: Sequence[SharedArray]) -> int:
    """Bytes of shared memory that the kernel itself reserves."""
    return 0 if _share_a_block(arrays) else sum(size for array in arrays if isinstance(size := size_bytes(array), int))


def dynamic_bytes(arrays: Sequence[SharedArray]) -> Dim:
    """Bytes of shared memory that a launch must add."""
    return expr.add(*map(size_bytes, arrays)) if _share_a_block(arrays) else 0


def size_bytes(array: SharedArray) -> Dim:
    """Bytes of an array, rounded up so that the next one is aligned for vectors."""
    size = expr.mul(array.elements, array.dtype.itemsize)
    return expr.mul(expr.ceildiv(size, VECTOR_BYTES), VECTOR_BYTES)


def declare_arrays(module: ir.Block, kernel: str, arrays: Sequence[SharedArray]) -> None:
    """Define in `module` the symbols that `array_bases` refers to."""
    with ir.InsertionPoint.at_block_begin(module):
        if not _share_a_block(arrays):
            for number, array in enumerate(arrays):
                _declare(_symbol(kernel, number), _type(array), is_external=False)
        elif not any(ir.StringAttr(op.operation.attributes["sym_name"]).value == DYNAMIC for op in module.operations):
            _declare(DYNAMIC, _block_type(), is_external=True)


def array_bases(kernel: str, arrays: Sequence[SharedArray], index: IndexEmitter) -> list[ir.Value]:
    """The arrays as memrefs for strided views, at the current insertion point."""
    if not _share_a_block(arrays):
        return [memref.get_global(_type(array), _symbol(kernel, number)) for number, array in enumerate(arrays)]
    block = memref.get_global(_block_type(), DYNAMIC)
    bases: list[ir.Value] = []
    start: Dim = 0
    for array in arrays:
        kind = ir.MemRefType.get([], stored_type(array.dtype), memory_space=encode(SPACE))
        bases.append(memref.view(kind, block, index(start), []))
        start = expr.add(start, size_bytes(array))
    return bases


def _share_a_block(arrays: Sequence[SharedArray]) -> bool:
    return not all(isinstance(array.elements, int) for array in arrays)


def _declare(name: str, kind: ir.Type, *, is_external: bool) -> None:
    op = memref.GlobalOp(name, kind, alignment=VECTOR_BYTES)
    if not is_external:
        op.operation.attributes["sym_visibility"] = ir.StringAttr.get("private")
        op.operation.attributes["initial_value"] = ir.UnitAttr.get()


def _symbol(kernel: str, number: int) -> str:
    return f"{kernel}_shared_{number}"


def _type(array: SharedArray) -> ir.MemRefType:
    # Padded to its declared size, since the assembler chooses the order of arrays, and the gaps with it.
    elements = expr.floordiv(size_bytes(array), array.dtype.itemsize)
    return ir.MemRefType.get([elements], stored_type(array.dtype), memory_space=encode(SPACE))


def _block_type() -> ir.MemRefType:
    return ir.MemRefType.get([0], ir.IntegerType.get_signless(8), memory_space=encode(SPACE))
