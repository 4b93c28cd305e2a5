"""Several reductions of a row in one sweep over its blocks, each total in a variable."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from dialect.mlir import ir, scf

from ..loops.scalar_dag import Node
from ..scalar.registers import stored_type
from ..schedule.sum_blocks import TOTAL
from ..schedule.sweeps import Part, Sweep
from .accumulation import identity
from .index_emission import IndexEmitter
from .memory import register, store
from .stage_emission import StageEmitter
from .sum_emission import over_blocks


def registers_of(sweep: Sweep, entry: ir.Block) -> Mapping[int, ir.Value]:
    """The variables of a sweep, by the number of the operand that each is."""
    return {number: register(entry, stored_type(dtype)) for number, dtype in sweep.registers.items()}


def emit_sweep(emit: StageEmitter, sweep: Sweep, index: IndexEmitter) -> None:
    """Emit the blocks of the current row. What each reduction comes to is stored by `emit_result`."""
    bases = emit.memory.bases

    def set_(operand: int, value: ir.Value, here: IndexEmitter) -> None:
        store(sweep.registers[operand], value, bases[operand], 0, here)

    def add(here: IndexEmitter) -> None:
        for part in sweep.parts:
            with _where(part.is_needed, emit, here) as inside:
                set_(part.block, emit.reduced(part.stage, sweep.within, inside), inside)
            if part.at_hand is not None:
                operand, shown = part.at_hand
                set_(operand, emit.body(here)(shown), here)
        scalars = emit.body(here)
        made = [(part.total, scalars(part.after)) for part in sweep.parts]
        made.append((sweep.count, scalars(sweep.counted)))
        for operand, value in made:
            set_(operand, value, here)

    set_(sweep.count, identity("sum", TOTAL), index)
    for part in sweep.parts:
        assert part.stage.combine is not None, "a sweep is of reductions"
        set_(part.total, identity(part.stage.combine, sweep.registers[part.total]), index)
    over_blocks(sweep.over, index, add)


@contextmanager
def _where(condition: Node | None, emit: StageEmitter, index: IndexEmitter) -> Generator[IndexEmitter]:
    """Emit what is inside under a condition, if there is one."""
    if condition is None:
        yield index
        return
    branch = scf.IfOp(emit.body(index)(condition))
    with ir.InsertionPoint(branch.then_block):
        yield index.inside({})
        scf.YieldOp([])


def emit_result(emit: StageEmitter, part: Part, index: IndexEmitter) -> None:
    """Store what the row comes to, when all that the part refers to is there."""
    emit.keep(emit.body(index)(part.result), part.stage, index)
