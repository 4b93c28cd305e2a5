"""Apply the maps behind a contraction to each block of its result while the block is in cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dialect.mlir import ir
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import Memory
from passes.emit.regions import nest
from passes.emit.stage_emission import StageEmitter
from passes.loops.body import KernelBody, Stage, inner_loops
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop
from passes.loops.substitution import over
from passes.schedule.nests import Strip, takes_vectors
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol

from .frame import Frame


class Block(NamedTuple):
    """A block of products in memory: the elements from a row to the next or, if its columns lie in runs, from a run to
    the next; the rows of a `run` follow each other.
    """

    memory: ir.Value
    stride: Dim
    run: int = 0


def emit_maps(
    body: KernelBody,
    number: int,
    parts: Contraction,
    block: Block,
    bases: Mapping[int, ir.Value],
    frame: Frame,
    index: IndexEmitter,
) -> None:
    """Emit contraction stage `number` as a map that reads the `block`, and the stages behind it; `index` has the first
    row and column of the block and its size.
    """
    columns, here = _columns(body, parts, block), index
    row = Loop("row", symbol("rows"))
    here.space.add(row.name, row.extent)
    operand = len(body.operands)
    known = Memory({**bases, operand: block.memory}, {}, frame.entry, {operand: columns.place})
    emit = StageEmitter(body.nodes, known, frame.machine.traits)
    stages = [stage for stage in _stages(body, number, parts, columns) if stage.stores]
    strips = [_strip(body, stage, columns, frame) for stage in stages]
    if len(stages) == 1 and strips[0] is not None:
        with nest(columns.outer, here) as (inside,):
            emit(stages[0], (row, *columns.inner), inside, strips[0])
        return
    with nest((*columns.outer, row), here) as (inside,):
        for stage, strip in zip(stages, strips, strict=True):
            emit(stage, columns.inner, inside, strip)


class _Columns(NamedTuple):
    """The loops over the columns of a block, outside and inside that over its rows; the place of the current element in
    the block; and the index of other loops of the kernel at its column.
    """

    outer: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    place: Dim
    of: Callable[[Sequence[Loop]], dict[str, Dim]]


def _columns(body: KernelBody, parts: Contraction, block: Block) -> _Columns:
    """One loop, or two if the result has its columns in runs; blocks begin at a run.

    Runs lie far apart in the result, and rows of a run side by side: rows inside runs write it in order.
    """
    if not parts.run:
        column = body.space.add("column", symbol("columns"))
        flat = expr.add(symbol("first_column"), column)
        place = expr.add(expr.mul(symbol("row"), block.stride), column)
        return _Columns((), (Loop("column", symbol("columns")),), place, lambda loops: positions(body, loops, flat))
    runs = expr.floordiv(symbol("columns"), parts.run)
    run, lane = body.space.add("run", runs), body.space.add("lane", parts.run)
    outer = expr.add(expr.floordiv(symbol("first_column"), parts.run), run)

    def of(loops: Sequence[Loop]) -> dict[str, Dim]:
        return {**positions(body, loops[:-1], outer), loops[-1].name: lane}

    of_row, of_run = (block.run, block.stride) if block.run else (block.stride, parts.run)
    place = expr.add(expr.mul(symbol("row"), of_row), expr.mul(run, of_run), lane)
    return _Columns((Loop("run", runs),), (Loop("lane", parts.run),), place, of)


def _strip(body: KernelBody, stage: Stage, columns: _Columns, frame: Frame) -> Strip | None:
    """The loop over a run, if it is in whole vectors: few passes of LLVM are then enough for the kernel."""
    lanes, last = frame.machine.vectors.masked_lanes, columns.inner[-1]
    if not lanes or not isinstance(last.extent, int) or last.extent % lanes:
        return None
    return Strip(last, lanes) if takes_vectors(stage, last, body.nodes) else None


def _stages(body: KernelBody, number: int, parts: Contraction, columns: _Columns) -> list[Stage]:
    """The stages over the columns of one row of the block; the contraction is a map that reads the block."""
    values = positions(body, parts.rows, expr.add(symbol("first_row"), symbol("row")))
    values |= columns.of(parts.columns)
    block = len(body.operands)
    first = over(body, body.stages[number], columns.inner, values)
    (made,) = first.stores
    load = body.nodes.load(made.root.dtype, block, first.domain.address, ())
    kept = [replace(entry, element=load) for entry in first.stores if not body.is_local(entry.operand)]
    stages = [replace(first, combine=None, elements=(load,), stores=tuple(kept))]
    for stage in body.stages[number + 1 :]:
        own = columns.of(inner) if (inner := inner_loops(body, stage)) else {}
        stages.append(over(body, stage, columns.inner, values | own, {made.operand: block}))
    return stages


def positions(body: KernelBody, loops: Sequence[Loop], flat: Dim) -> dict[str, Dim]:
    """The index of each of the loops at a flat position."""
    places = body.space.unflatten(flat, [loop.extent for loop in loops])
    return {loop.name: place for loop, place in zip(loops, places, strict=False)}
