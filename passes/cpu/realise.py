"""Scheduled kernels -> linalg, vector and scf on memrefs, one body function of the CPU ABI per kernel."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import ir
from dialect.module import graph_function
from passes.schedule.attach import PROGRAM, kernel_functions, read_body, read_plan, schedule_of
from passes.to_linalg.arguments import operand_pointers
from passes.values import read_function, read_symbols

from .abi import entry_function, kernel_function
from .frame import Frame
from .machine import Machine
from .strategies import STRATEGIES

SYMBOL_COUNT = "kiln.symbol_count"
"""On a module of realised kernels: how many values every kernel takes."""


def realise_kernels(module: ir.Module, machine: Machine) -> ir.Module:
    """A new module with a body function for every kernel of `module`, realised as its schedule says."""
    graph = read_function(graph_function(module).operation, read_symbols(module))
    buffers, steps = read_plan(module)
    kernels = kernel_functions(module)
    result = ir.Module.create(loc=module.operation.location)
    for step in steps:
        if step.kernel is None:
            continue
        function = kernels[step.kernel]
        body = read_body(function, graph)
        strategy, item, _ = schedule_of(function)

        def emit(
            entry: ir.Block, arguments: Sequence[ir.Value], values: Sequence[ir.Value], first: ir.Value, last: ir.Value
        ) -> None:
            symbols = dict(zip(graph.symbols, values, strict=True))
            pointers = operand_pointers(step, buffers, arguments)  # noqa: B023
            frame = Frame(entry, pointers, symbols, first, last, machine)
            STRATEGIES[strategy].realise(body, item, frame)  # noqa: B023

        with ir.InsertionPoint(result.body), function.location:
            dtypes = [buffers[number].dtype for number in step.arguments]
            kernel_function(step.kernel, dtypes, len(graph.symbols), emit)
    with module.context:
        result.operation.attributes[PROGRAM] = module.operation.attributes[PROGRAM]
        result.operation.attributes[SYMBOL_COUNT] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), len(graph.symbols)
        )
    return result


def add_entries(module: ir.Module) -> ir.Module:
    """Add the exported function of every kernel to a module in the LLVM dialect, and drop what only we read."""
    _, steps = read_plan(module)
    symbols = ir.IntegerAttr(module.operation.attributes[SYMBOL_COUNT]).value
    with ir.InsertionPoint(module.body), ir.Location.unknown(module.context):
        for step in steps:
            if step.kernel is not None:
                entry_function(step.kernel, len(step.arguments), symbols)
    for name in (PROGRAM, SYMBOL_COUNT):
        del module.operation.attributes[name]
    return module
