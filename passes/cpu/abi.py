"""Kernel functions of the CPU ABI.

A kernel is `void entry(void *const *buffers, const int64_t *vals, int64_t first, int64_t last)`. It unpacks its
arguments and calls a body that takes bare pointers, integers and the range of work-groups, so that the optimiser knows
which pointers do not alias. The body is inlined before it is optimised, or LLVM would optimise it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dialect.mlir import func, ir, llvm
from passes.scalar.registers import stored_type
from tensorkiln.dtypes import DType

from .shared_functions import internal_function

BODY_SUFFIX = "_body"
GroupEmission = Callable[[ir.Block, Sequence[ir.Value], Sequence[ir.Value], ir.Value, ir.Value], None]
"""Emits a body: `(entry block, buffer pointers, symbol values, first group, last group)`."""


def kernel_function(name: str, dtypes: Sequence[DType], symbols: int, emit: GroupEmission) -> None:
    """Define the body function of a kernel at the current insertion point.

    Buffers are rank-0 memrefs, which cross the function boundary as bare pointers that do not alias. It has no callers
    until its entry is added, so it is public for the passes before.
    """
    index = ir.IndexType.get()
    buffers = [ir.MemRefType.get([], stored_type(dtype)) for dtype in dtypes]
    function = internal_function(name + BODY_SUFFIX, [*buffers, *[index] * (symbols + 2)])
    block = function.add_entry_block()
    *arguments, first, last = block.arguments
    with ir.InsertionPoint(block):
        emit(block, arguments[: len(buffers)], arguments[len(buffers) :], first, last)
        func.ReturnOp([])


def entry_function(name: str, body: ir.Operation, buffers: int, symbols: int) -> None:
    """Define the exported function of a kernel whose body, `body`, has been lowered to the LLVM dialect."""
    body.attributes["always_inline"] = ir.UnitAttr.get()
    pointer, i64 = llvm.PointerType.get(), ir.IntegerType.get_signless(64)
    kind = ir.Type.parse("!llvm.func<void (ptr, ptr, i64, i64)>")
    function = llvm.LLVMFuncOp(name, ir.TypeAttr.get(kind))
    block = function.body.blocks.append(pointer, pointer, i64, i64)
    table, values, first, last = block.arguments
    with ir.InsertionPoint(block):
        arguments = [_element(table, number, pointer) for number in range(buffers)]
        arguments += [_element(values, number, i64) for number in range(symbols)]
        llvm.CallOp(
            None,
            [*arguments, first, last],
            [],
            ir.DenseI32ArrayAttr.get([]),
            callee=ir.FlatSymbolRefAttr.get(name + BODY_SUFFIX),
        )
        llvm.ReturnOp()


def _element(table: ir.Value, number: int, element: ir.Type) -> ir.Value:
    may_wrap = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
    address = llvm.GEPOp(llvm.PointerType.get(), table, [], [number], element, may_wrap).result
    return llvm.LoadOp(element, address).result
