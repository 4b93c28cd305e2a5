"""A long sum: blocks are summed in the result's precision and added to a float64 total, which is rounded at the end."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import arith, ir, linalg, memref
from passes import scalar

from ..loops.domain import extent_of
from ..schedule.nests import Strip
from ..schedule.sum_blocks import TOTAL, Blocks
from .accumulation import identity
from .index_emission import IndexEmitter
from .memory import strided_view
from .regions import nest
from .stage_emission import Generic, StageEmitter, Target


def emit_sum(
    emit: StageEmitter, blocks: Blocks, totals: ir.Value, index: IndexEmitter, strip: Strip | None = None
) -> None:
    """Emit a sum for the current row; `totals` has room for a float64 for each sum of the row, and `strip` is the loop
    in masked vectors.
    """
    if blocks.columns:
        _columns(emit, blocks, totals, index, strip)
        return
    (value,) = row_sums(emit, blocks, [totals], [index])
    emit.keep(value, blocks.stage, index)


def row_sums(
    emit: StageEmitter, blocks: Blocks, totals: Sequence[ir.Value], rows: Sequence[IndexEmitter]
) -> list[ir.Value]:
    """The sums of `rows`, one block of all of them at a time; `totals` has a float64 for each row."""
    dtype, traits = blocks.stage.elements[0].dtype, emit.traits
    for total in totals:
        memref.store(identity("sum", TOTAL), total, [])
    with nest(blocks.over, *rows) as here:
        for total, block in zip(totals, emit.reduced_together(blocks.stage, blocks.within, here), strict=True):
            more = scalar.cast(dtype, TOTAL, block, traits=traits)
            memref.store(arith.addf(memref.load(total, []), more), total, [])
    return [scalar.cast(TOTAL, dtype, memref.load(total, []), traits=traits) for total in totals]


def _columns(emit: StageEmitter, blocks: Blocks, totals: ir.Value, index: IndexEmitter, strip: Strip | None) -> None:
    """Sum a block in the memory of the results, then replace it by the rounded totals so far."""
    columns, dtype, traits = blocks.columns, blocks.stage.elements[0].dtype, emit.traits
    strides = [extent_of(columns[number + 1 :]) for number in range(len(columns))]
    view = strided_view(totals, 0, [each.extent for each in columns], strides, index)
    (entry,) = blocks.stage.stores
    result = emit.target(blocks.stage.domain.address, entry.operand, columns, index)
    targets = [Target(view, result.axes), result]
    with Generic(emit, (), columns, targets, [index]):
        linalg.yield_([identity("sum", TOTAL), identity("sum", dtype)])
    with nest(blocks.over, index) as (here,):
        emit(blocks.stage, blocks.within, here, strip)
        with Generic(emit, (), columns, targets, [here]) as (_, (before, block)):
            total = arith.addf(before, scalar.cast(dtype, TOTAL, block, traits=traits))
            linalg.yield_([total, scalar.cast(TOTAL, dtype, total, traits=traits)])
