"""The loops around a row: the work-groups of the frame, and the rows of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dialect.mlir import ir, scf
from passes.emit.index_emission import IndexEmitter
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import Index, IndexSpace
from tensorkiln import expr

from .frame import Frame

GROUP, ROW = "group", "row"
RowEmission = Callable[[Index, IndexEmitter], None]
"""Emits one row, given its position in each of the row loops."""


def for_each_row(frame: Frame, space: IndexSpace, rows: Sequence[Loop], per_group: int, emit: RowEmission) -> None:
    """Emit the loops over the frame's work-groups and over the `per_group` rows of each, with `emit` inside."""
    count = extent_of(rows)
    start = expr.mul(space.add(GROUP, expr.ceildiv(count, per_group)), per_group)
    end = expr.minimum(expr.add(start, per_group), count)
    index = IndexEmitter(space, frame.symbols)
    over_groups = scf.ForOp(frame.first, frame.last, index(1))
    with ir.InsertionPoint(over_groups.body):
        inside = index.inside({GROUP: over_groups.induction_variable})
        over_rows = scf.ForOp(inside(start), inside(end), inside(1))
        with ir.InsertionPoint(over_rows.body):
            positions = space.unflatten(space.add(ROW, count), [loop.extent for loop in rows])
            emit(positions, inside.inside({ROW: over_rows.induction_variable}))
            scf.YieldOp([])
        scf.YieldOp([])
