"""Kernel functions of the GPU ABI: a pointer for every buffer in call order, then the values of the symbols as i64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dialect.mlir import func, ir
from passes.attributes import encode
from passes.scalar.registers import stored_type
from tensorkiln.dtypes import DType

from .intrinsics import Intrinsics

KERNEL_THREADS = "kiln.threads"
"""Function attribute until kernels are marked: the threads of a work-group."""

KernelEmission = Callable[[ir.Block, Sequence[ir.Value], Sequence[ir.Value]], None]
"""Emits a kernel: `(entry block, buffer pointers, symbol values)`."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A buffer argument: its dtype, the alignment of its address in bytes, and whether the kernel stores to it."""

    dtype: DType
    alignment: int
    is_written: bool


def kernel_function(name: str, arguments: Sequence[Argument], symbols: int, threads: int, emit: KernelEmission) -> None:
    """Define a kernel at the current insertion point. Its buffers do not overlap."""
    index = ir.IndexType.get()
    buffers = [ir.MemRefType.get([], stored_type(argument.dtype)) for argument in arguments]
    function = func.FuncOp(name, ([*buffers, *[index] * symbols], []))
    function.attributes[KERNEL_THREADS] = encode(threads)
    function.arg_attrs = ir.ArrayAttr.get([*map(_attributes, arguments), *[encode({})] * symbols])
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        emit(block, block.arguments[: len(buffers)], block.arguments[len(buffers) :])
        func.ReturnOp([])


def _attributes(argument: Argument) -> ir.Attribute:
    # Lets loads use the read-only cache.
    readonly = {} if argument.is_written else {"llvm.readonly": None}
    return encode({"llvm.noalias": None, "llvm.align": argument.alignment, **readonly})


def mark_kernels(module: ir.Module, intrinsics: Intrinsics) -> ir.Module:
    """Make device entries of the functions with `KERNEL_THREADS`, which have been lowered to the LLVM dialect."""
    with module.context:
        for op in module.body.operations:
            attributes = op.operation.attributes
            if KERNEL_THREADS in attributes:
                threads = ir.IntegerAttr(attributes[KERNEL_THREADS]).value
                for name, value in intrinsics.entry(threads).items():
                    attributes[name] = value
                del attributes[KERNEL_THREADS]
    return module
