"""The loops around a row: the work-groups of the frame, and the rows of each work-group."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from dialect.mlir import arith, ir
from passes.emit.index_emission import IndexEmitter
from passes.emit.regions import loop, where
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import Index, IndexSpace
from tensorkiln import expr
from tensorkiln.expr import Dim

from .frame import Frame

# No emission of a row names a loop or a value like these: the same name would be taken for the row's position.
GROUP, FIRST, ROW, LINE, PLACE = "group", "first", "row", "row_line", "row_place"
RowEmission = Callable[[Index, IndexEmitter], None]
"""Emits one row, given its position in each of the row loops."""
Reduction = Callable[[Index, Sequence[IndexEmitter]], Sequence[ir.Value]]
"""Emits the reductions of several rows, given the emitter of each row."""
Rest = Callable[[Index, IndexEmitter, ir.Value], None]
"""Emits the rest of a row, given the result of its reduction."""


def for_each_row(frame: Frame, space: IndexSpace, rows: Sequence[Loop], per_group: int, emit: RowEmission) -> None:
    """Emit the loops over the frame's work-groups and over the `per_group` rows of each, with `emit` inside.

    The last of several row loops has a loop of its own if its extent is constant, so that what it leaves unchanged is
    computed outside of it.
    """
    *around, width = (each.extent for each in rows) if rows else (1,)
    if not around or not isinstance(width, int):
        for positions, start, end, inside in _groups(frame, space, rows, per_group):
            with loop(ROW, start, end, 1, inside) as here:
                emit(positions, here)
        return
    lines = expr.product(around)
    line, place = space.add(LINE, lines), space.add(PLACE, width)
    positions = (*space.unflatten(line, around), place)
    for _, start, end, inside in _groups(frame, space, rows, per_group):
        first, after = expr.floordiv(start, width), expr.minimum(expr.ceildiv(expr.add(start, per_group), width), lines)
        with loop(LINE, first, after, 1, inside) as each:
            before = expr.mul(line, width)
            begin, stop = expr.maximum(expr.sub(start, before), 0), expr.minimum(expr.sub(end, before), width)
            with loop(PLACE, begin, stop, 1, each) as here:
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
    is_whole = expr.floormod(extent_of(rows), at_once) == 0 and per_group % at_once == 0
    for positions, start, end, inside in _groups(frame, space, rows, per_group):
        with loop(FIRST, start, end, at_once, inside) as here:
            ahead = [expr.add(expr.symbol(FIRST), number) for number in range(at_once)]
            present = ahead if is_whole else [expr.minimum(row, expr.sub(end, 1)) for row in ahead]
            values = reduce(positions, [here.inside({ROW: here(row)}) for row in present])
            for row, value in zip(ahead, values, strict=True):
                if is_whole:
                    finish(positions, here.inside({ROW: here(row)}), value)
                    continue
                with where(arith.cmpi(arith.CmpIPredicate.slt, here(row), here(end)), here):
                    finish(positions, here.inside({ROW: here(row)}), value)


def _groups(
    frame: Frame, space: IndexSpace, rows: Sequence[Loop], per_group: int
) -> Generator[tuple[Index, Dim, Dim, IndexEmitter]]:
    """Loop over the work-groups; yields the row's position in terms of `ROW`, and the first and last row of a group."""
    count = extent_of(rows)
    start = expr.mul(space.add(GROUP, expr.ceildiv(count, per_group)), per_group)
    end = expr.minimum(expr.add(start, per_group), count)
    positions = space.unflatten(space.add(ROW, count), [each.extent for each in rows])
    index = IndexEmitter(space, frame.symbols)
    with loop(GROUP, frame.first, frame.last, 1, index) as inside:
        yield positions, start, end, inside
