"""Several reductions of a row in one sweep over its blocks, with each total in a variable."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from dialect.mlir import ir

from ..scalar.registers import stored_type
from ..schedule.sweeps import Put, Result, Sweep
from .accumulation import identity
from .index_emission import IndexEmitter
from .memory import register, store
from .regions import nest, where
from .stage_emission import StageEmitter


def registers_of(sweep: Sweep, entry: ir.Block) -> Mapping[int, ir.Value]:
    """The variables of a sweep, by operand number."""
    return {number: register(entry, stored_type(dtype)) for number, dtype in sweep.registers.items()}


def emit_sweep(emit: StageEmitter, sweep: Sweep, index: IndexEmitter) -> None:
    """Emit the blocks of the current row. `emit_result` stores the result of each reduction."""
    bases = emit.memory.bases

    def put(number: int, value: ir.Value, here: IndexEmitter) -> None:
        store(sweep.registers[number], value, bases[number], 0, here)

    for number, combine in sweep.begin.items():
        put(number, identity(combine, sweep.registers[number]), index)
    with nest(sweep.over, index) as (here,):
        for step in sweep.steps:
            if isinstance(step, Put):
                put(step.register, emit.body(here)(step.value), here)
                continue
            needed = None if step.needed is None else emit.body(here)(step.needed)
            with nullcontext(here) if needed is None else where(needed, here) as inside:
                put(step.register, emit.reduced(step.stage, sweep.within, inside), inside)
        scalars = emit.body(here)
        made = [(total.register, scalars(total.value)) for total in sweep.totals]
        for number, value in made:
            put(number, value, here)


def emit_result(emit: StageEmitter, result: Result, index: IndexEmitter) -> None:
    """Store a result of the row, after everything that the stage refers to has been stored."""
    emit.keep(emit.body(index)(result.value), result.stage, index)
