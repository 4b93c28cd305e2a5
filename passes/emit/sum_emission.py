"""A long sum: each block is summed where the result belongs, and is added to a total in float64, then rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dialect.mlir import arith, ir, linalg, memref, scf
from passes import scalar

from ..loops.domain import Loop, extent_of
from ..schedule.sum_blocks import TOTAL, Blocks
from .accumulation import identity
from .index_emission import IndexEmitter
from .memory import strided_view
from .stage_emission import Generic, StageEmitter, Target


def emit_sum(emit: StageEmitter, blocks: Blocks, totals: ir.Value, index: IndexEmitter) -> None:
    """Emit a sum for the current row; `totals` has room for a float64 for each sum of the row."""
    (_columns if blocks.columns else _row)(emit, blocks, totals, index)


def _row(emit: StageEmitter, blocks: Blocks, total: ir.Value, index: IndexEmitter) -> None:
    dtype, traits = blocks.stage.elements[0].dtype, emit.traits

    def add(here: IndexEmitter) -> None:
        block = scalar.cast(dtype, TOTAL, emit.reduced(blocks.stage, blocks.within, here), traits=traits)
        memref.store(arith.addf(memref.load(total, []), block), total, [])

    memref.store(identity("sum", TOTAL), total, [])
    over_blocks(blocks.over, index, add)
    emit.keep(scalar.cast(TOTAL, dtype, memref.load(total, []), traits=traits), blocks.stage, index)


def _columns(emit: StageEmitter, blocks: Blocks, totals: ir.Value, index: IndexEmitter) -> None:
    """Sum a block where the results belong, and replace it by the totals so far."""
    columns, dtype, traits = blocks.columns, blocks.stage.elements[0].dtype, emit.traits
    strides = [extent_of(columns[number + 1 :]) for number in range(len(columns))]
    view = strided_view(totals, 0, [loop.extent for loop in columns], strides, index)
    (entry,) = blocks.stage.stores
    result = emit.target(blocks.stage.domain.address, entry.operand, columns, index)
    targets = [Target(view, result.axes), result]

    def add(here: IndexEmitter) -> None:
        emit(blocks.stage, blocks.within, here)
        with Generic(emit, (), columns, targets, [here]) as (_, (before, block)):
            total = arith.addf(before, scalar.cast(dtype, TOTAL, block, traits=traits))
            linalg.yield_([total, scalar.cast(TOTAL, dtype, total, traits=traits)])

    with Generic(emit, (), columns, targets, [index]):
        linalg.yield_([identity("sum", TOTAL), identity("sum", dtype)])
    over_blocks(blocks.over, index, add)


def over_blocks(loops: Sequence[Loop], index: IndexEmitter, emit: Callable[[IndexEmitter], None]) -> None:
    """The loops, with `emit` inside the innermost."""
    if not loops:
        emit(index)
        return
    loop = scf.ForOp(index(0), index(loops[0].extent), index(1))
    with ir.InsertionPoint(loop.body):
        over_blocks(loops[1:], index.inside({loops[0].name: loop.induction_variable}), emit)
        scf.YieldOp([])
