"""Scheduled kernels -> scf and vector on memrefs, one function of the GPU ABI per kernel."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import ir
from dialect.module import graph_function
from passes.schedule.attach import kernel_functions, read_body, read_plan, schedule_of
from passes.to_linalg.arguments import operand_pointers
from passes.to_linalg.index_emission import IndexEmitter
from passes.to_linalg.index_space import IndexSpace
from passes.values import read_function, read_symbols
from tensorkiln.buffers import Buffer

from .abi import Argument, kernel_function
from .frame import GROUP, THREAD, Frame
from .intrinsics import group_index, thread_index
from .machine import VECTOR_BYTES, Machine
from .record import threads_of
from .shared_memory import array_bases, declare_arrays
from .strategies import STRATEGIES


def realise_kernels(module: ir.Module, machine: Machine) -> ir.Module:
    """A new module with a function for every kernel of `module`, realised as its schedule says."""
    graph = read_function(graph_function(module).operation, read_symbols(module))
    buffers, steps = read_plan(module)
    kernels = kernel_functions(module)
    result = ir.Module.create(loc=module.operation.location)
    for step in steps:
        if step.kernel is None:
            continue
        function, name = kernels[step.kernel], step.kernel
        body = read_body(function, graph)
        strategy, item, _ = schedule_of(function)

        def emit(entry: ir.Block, arguments: Sequence[ir.Value], values: Sequence[ir.Value]) -> None:
            names = dict(zip(graph.symbols, values, strict=True))
            names |= {GROUP: group_index(), THREAD: thread_index()}
            index = IndexEmitter(IndexSpace(graph.symbols), names)
            shared = array_bases(name, item.shared, index)  # noqa: B023
            pointers = operand_pointers(step, buffers, arguments)  # noqa: B023
            used = (*step.reads, *step.writes, *step.scratch)  # noqa: B023
            alignments = [_alignment(buffers[number]) for number in used]
            frame = Frame(entry, pointers, alignments, shared, names, threads_of(item), machine)  # noqa: B023
            STRATEGIES[strategy].realise(body, item, frame)  # noqa: B023

        written = {*step.writes, *step.scratch}
        parameters = [
            Argument(buffers[number].dtype, _alignment(buffers[number]), number in written) for number in step.arguments
        ]
        with ir.InsertionPoint(result.body), function.location:
            declare_arrays(result.body, name, item.shared)
            kernel_function(name, parameters, len(graph.symbols), threads_of(item), emit)
    return result


def _alignment(buffer: Buffer) -> int:
    """What is known of the address of a buffer, as far as vectors care, in bytes."""
    return min(buffer.alignment, VECTOR_BYTES)
