"""Scheduled kernels -> scf and vector on memrefs, one function of the GPU ABI per kernel."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import arith, ir
from passes.emit.arguments import operand_pointers
from passes.emit.index_emission import IndexEmitter
from passes.loops.index_space import IndexSpace
from passes.schedule.attach import ScheduledKernel, read_buffers, scheduled_kernels
from passes.schedule.record import threads_of
from passes.values import read_symbols
from tensorkiln.buffers import Buffer

from .abi import Argument, kernel_function
from .frame import GROUP, THREAD, Frame
from .machine import VECTOR_BYTES, Machine
from .shared_memory import array_bases, declare_arrays
from .strategies import STRATEGIES, UNSCHEDULED

_ALL = {**STRATEGIES, **UNSCHEDULED}


def realise_kernels(module: ir.Module, machine: Machine) -> ir.Module:
    """A new module with a function for every entry of `module`, as its schedule says."""
    symbols = tuple(read_symbols(module))
    buffers = read_buffers(module)
    result = ir.Module.create(loc=module.operation.location)
    for kernel in scheduled_kernels(module):
        with ir.InsertionPoint(result.body), kernel.location:
            declare_arrays(result.body, kernel.entry, kernel.item.shared)
            _realise(kernel, buffers, symbols, machine)
    return result


def _realise(kernel: ScheduledKernel, buffers: Sequence[Buffer], symbols: Sequence[str], machine: Machine) -> None:
    step, item, threads = kernel.step, kernel.item, threads_of(kernel.item)
    written = {*step.writes, *step.scratch}

    def emit(entry: ir.Block, arguments: Sequence[ir.Value], values: Sequence[ir.Value]) -> None:
        names = dict(zip(symbols, values, strict=True))
        numbers = machine.intrinsics.group(), machine.intrinsics.thread()
        names |= dict(zip((GROUP, THREAD), (arith.index_castui(ir.IndexType.get(), n) for n in numbers), strict=True))
        shared = array_bases(kernel.entry, item.shared, IndexEmitter(IndexSpace(kernel.body.function.symbols), names))
        pointers = operand_pointers(step, buffers, arguments)
        alignments = [_alignment(buffers[number]) for number in (*step.reads, *step.writes, *step.scratch)]
        frame = Frame(entry, pointers, alignments, shared, names, threads, machine, kernel.linalg)
        _ALL[kernel.strategy].emit(kernel.body, item, frame)

    parameters = [
        Argument(buffers[number].dtype, _alignment(buffers[number]), number in written) for number in step.arguments
    ]
    kernel_function(kernel.entry, parameters, len(symbols), threads, emit)


def _alignment(buffer: Buffer) -> int:
    """The known alignment of a buffer's address in bytes, up to that of the widest vector."""
    return min(buffer.alignment, VECTOR_BYTES)
