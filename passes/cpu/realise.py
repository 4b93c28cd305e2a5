"""Scheduled kernels -> linalg, vector and scf on memrefs, one body function of the CPU ABI per kernel."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import ir
from passes.emit.arguments import operand_pointers
from passes.schedule.attach import PROGRAM, ScheduledKernel, entry_steps, read_buffers, read_steps, scheduled_kernels
from passes.values import functions_of, read_symbols
from tensorkiln.buffers import Buffer

from .abi import BODY_SUFFIX, entry_function, kernel_function
from .frame import Frame
from .machine import Machine
from .strategies import STRATEGIES, UNSCHEDULED

SYMBOL_COUNT = "kiln.symbol_count"
"""Module attribute: the number of symbol values that every kernel takes."""


_ALL = {**STRATEGIES, **UNSCHEDULED}


def realise_kernels(module: ir.Module, machine: Machine) -> ir.Module:
    """A new module with a body function for every entry of `module`, as its schedule says."""
    symbols = tuple(read_symbols(module))
    buffers = read_buffers(module)
    result = ir.Module.create(loc=module.operation.location)
    for kernel in scheduled_kernels(module):
        with ir.InsertionPoint(result.body), kernel.location:
            _realise(kernel, buffers, symbols, machine)
    with module.context:
        result.operation.attributes[PROGRAM] = module.operation.attributes[PROGRAM]
        result.operation.attributes[SYMBOL_COUNT] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(symbols))
    return result


def _realise(kernel: ScheduledKernel, buffers: Sequence[Buffer], symbols: Sequence[str], machine: Machine) -> None:
    def emit(
        entry: ir.Block, arguments: Sequence[ir.Value], values: Sequence[ir.Value], first: ir.Value, last: ir.Value
    ) -> None:
        pointers = operand_pointers(kernel.step, buffers, arguments)
        frame = Frame(entry, pointers, dict(zip(symbols, values, strict=True)), first, last, machine, kernel.linalg)
        _ALL[kernel.strategy].emit(kernel.body, kernel.item, frame)

    dtypes = [buffers[number].dtype for number in kernel.step.arguments]
    kernel_function(kernel.entry, dtypes, len(symbols), emit)


def add_entries(module: ir.Module) -> ir.Module:
    """Add the exported function of every entry to a module in the LLVM dialect, and drop our own attributes."""
    symbols = ir.IntegerAttr(module.operation.attributes[SYMBOL_COUNT]).value
    functions = functions_of(module)
    with ir.InsertionPoint(module.body), ir.Location.unknown(module.context):
        for step in entry_steps(read_steps(module)):
            entry_function(step.entry, functions[step.entry + BODY_SUFFIX], len(step.arguments), symbols)
    for name in (PROGRAM, SYMBOL_COUNT):
        del module.operation.attributes[name]
    return module
