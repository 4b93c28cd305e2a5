"""A block of a contraction's result is stored; what the maps behind it make of it is computed while it is in cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dialect.mlir import ir, scf
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import Memory
from passes.emit.stage_emission import StageEmitter
from passes.loops.body import KernelBody, Stage
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop
from passes.loops.substitution import over
from passes.schedule.tiling import inner_loops
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol

from .frame import Frame


def emit_maps(
    body: KernelBody,
    number: int,
    parts: Contraction,
    block: tuple[ir.Value, Dim],
    bases: Mapping[int, ir.Value],
    frame: Frame,
    index: IndexEmitter,
) -> None:
    """Emit the contraction that stage `number` is as a map that reads the `block`, and the stages behind it.

    The block is in memory, its rows so many elements apart; `index` knows where it begins and how large it is.
    """
    memory, stride = block
    rows = scf.ForOp(index(0), index(symbol("rows")), index(1))
    with ir.InsertionPoint(rows.body):
        here = index.inside({"row": rows.induction_variable})
        column = Loop("column", symbol("columns"))
        here.space.add("row", symbol("rows"))
        here.space.add("column", symbol("columns"))
        operand = len(body.operands)
        place = expr.add(expr.mul(symbol("row"), stride), symbol("column"))
        known = Memory({**bases, operand: memory}, {}, frame.entry, {operand: place})
        emit = StageEmitter(body.nodes, known, frame.machine.traits)
        for stage in _stages(body, number, parts, column):
            if stage.stores:
                emit(stage, (column,), here)
        scf.YieldOp([])


def _stages(body: KernelBody, number: int, parts: Contraction, column: Loop) -> list[Stage]:
    """The stages over the columns of one row of the block, the contraction as a map that reads the block."""
    values = positions(body, parts.rows, expr.add(symbol("first_row"), symbol("row")))
    values |= positions(body, parts.columns, expr.add(symbol("first_column"), symbol("column")))
    block = len(body.operands)
    first = over(body, body.stages[number], (column,), values)
    (made,) = first.stores
    load = body.nodes.load(made.root.dtype, block, first.domain.address, ())
    kept = [replace(entry, element=load) for entry in first.stores if not body.is_local(entry.operand)]
    stages = [replace(first, combine=None, elements=(load,), stores=tuple(kept))]
    for stage in body.stages[number + 1 :]:
        own = positions(body, inner_loops(body, stage), expr.add(symbol("first_column"), symbol("column")))
        stages.append(over(body, stage, (column,), values | own, {made.operand: block}))
    return stages


def positions(body: KernelBody, loops: Sequence[Loop], flat: Dim) -> dict[str, Dim]:
    """The index of each of the loops at a flat position."""
    places = body.space.unflatten(flat, [loop.extent for loop in loops])
    return {loop.name: place for loop, place in zip(loops, places, strict=False)}
