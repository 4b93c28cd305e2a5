"""The loops around a row. Work-groups of a frame follow each other, and so do their rows: one loop runs all of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from dialect.mlir import arith, ir
from passes.emit.index_emission import IndexEmitter
from passes.emit.regions import loop, where
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import Index, IndexSpace
from tensorkiln import expr
from tensorkiln.expr import Dim

from .frame import Frame

# No emission of a row names a loop or a value like these: the same name would be taken for the row's position.
BEGIN, END, FIRST, ROW, LINE, PLACE = "row_begin", "row_end", "first", "row", "row_line", "row_place"
RowEmission = Callable[[Index, IndexEmitter], None]
"""Emits one row, given its position in each of the row loops."""
Reduction = Callable[[Index, Sequence[IndexEmitter]], Sequence[ir.Value]]
"""Emits the reductions of several rows, given the emitter of each row."""
Rest = Callable[[Index, IndexEmitter, ir.Value], None]
"""Emits the rest of a row, given the result of its reduction."""


class Span(NamedTuple):
    """Rows that follow each other: from `begin` on, before `end`."""

    begin: Dim
    end: Dim


@contextmanager
def span_of(frame: Frame, space: IndexSpace, count: Dim, per_group: int) -> Generator[tuple[Span, IndexEmitter]]:
    """The rows of the frame's work-groups, of `per_group` each out of `count`, and an emitter of code that uses them.

    A kernel of one work-group has constant bounds, from which LLVM knows the length of its loops.
    """
    index = IndexEmitter(space, frame.symbols)
    if isinstance(count, int) and count <= per_group:
        with where(arith.cmpi(arith.CmpIPredicate.slt, frame.first, frame.last), index) as inside:
            yield Span(0, count), inside
        return
    for name in (BEGIN, END):
        space.bound(name, 0, space.largest(count))
    size = index(per_group)
    begin = arith.muli(frame.first, size)
    end = arith.minsi(arith.muli(frame.last, size), index(count))
    yield Span(expr.symbol(BEGIN), expr.symbol(END)), index.inside({BEGIN: begin, END: end})


def for_each_row(frame: Frame, space: IndexSpace, rows: Sequence[Loop], per_group: int, emit: RowEmission) -> None:
    """Emit the loops over the rows of the frame's work-groups, of `per_group` rows each, with `emit` inside.

    The last of several row loops has a loop of its own if its extent is constant, so that what it leaves unchanged is
    computed outside of it.
    """
    *around, width = (each.extent for each in rows) if rows else (1,)
    if not around or not isinstance(width, int):
        with (
            span_of(frame, space, extent_of(rows), per_group) as (span, inside),
            loop(ROW, span.begin, span.end, 1, inside) as here,
        ):
            emit(_positions(space, rows), here)
        return
    lines = expr.product(around)
    line, place = space.add(LINE, lines), space.add(PLACE, width)
    positions = (*space.unflatten(line, around), place)
    has_whole_lines = width > 0 and per_group % width == 0
    count, each_group = (lines, per_group // width) if has_whole_lines else (extent_of(rows), per_group)
    with span_of(frame, space, count, each_group) as (span, inside):
        first, after, begin, stop = span.begin, span.end, 0, width
        if not has_whole_lines:
            before = expr.mul(line, width)
            first, after = expr.floordiv(first, width), expr.ceildiv(after, width)
            begin = expr.maximum(expr.sub(span.begin, before), 0)
            stop = expr.minimum(expr.sub(span.end, before), width)
        with loop(LINE, first, after, 1, inside) as each, loop(PLACE, begin, stop, 1, each) as here:
            emit(positions, here)


def for_rows_at_once(
    frame: Frame,
    space: IndexSpace,
    rows: Sequence[Loop],
    per_group: int,
    at_once: int,
    reduce: Reduction,
    finish: Rest,
) -> None:
    """Like `for_each_row`, but `at_once` rows are reduced together and then finished one by one.

    If fewer rows are left, the last one is reduced in place of the missing ones, and finished once. So all rows are
    reduced in the same way, and equal rows have equal results.
    """
    positions, count, first = _positions(space, rows), extent_of(rows), expr.symbol(FIRST)
    if expr.floormod(count, at_once) == 0 and per_group % at_once == 0:
        with (
            span_of(frame, space, expr.floordiv(count, at_once), per_group // at_once) as (span, inside),
            loop(FIRST, span.begin, span.end, 1, inside) as here,
        ):
            found = [here(expr.add(expr.mul(first, at_once), number)) for number in range(at_once)]
            each = [here.inside({ROW: row}) for row in found]
            for row, value in zip(found, reduce(positions, each), strict=True):
                finish(positions, here.inside({ROW: row}), value)
        return
    with (
        span_of(frame, space, count, per_group) as (span, inside),
        loop(FIRST, span.begin, span.end, at_once, inside) as here,
    ):
        ahead = [expr.add(first, number) for number in range(at_once)]
        present = [here(expr.minimum(row, expr.sub(span.end, 1))) for row in ahead]
        values = reduce(positions, [here.inside({ROW: row}) for row in present])
        for row, value in zip(ahead, values, strict=True):
            with where(arith.cmpi(arith.CmpIPredicate.slt, here(row), here(span.end)), here):
                finish(positions, here.inside({ROW: here(row)}), value)


def _positions(space: IndexSpace, rows: Sequence[Loop]) -> Index:
    """The position in each of the row loops, in terms of `ROW`."""
    return space.unflatten(space.add(ROW, extent_of(rows)), [each.extent for each in rows])
