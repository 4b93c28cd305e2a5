"""The loops around a row: the work-groups of the frame, and the rows of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dialect.mlir import arith, ir, scf
from passes.emit.index_emission import IndexEmitter
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import Index, IndexSpace
from tensorkiln import expr
from tensorkiln.expr import Dim

from .frame import Frame

GROUP, FIRST, ROW = "group", "first", "row"
RowEmission = Callable[[Index, Sequence[IndexEmitter]], None]
"""Emits rows, given their position in each of the row loops, and an emitter for each of them."""


def for_each_row(
    frame: Frame, space: IndexSpace, rows: Sequence[Loop], per_group: int, emit: RowEmission, at_once: int = 1
) -> None:
    """Emit the loops over the frame's work-groups and over the `per_group` rows of each, with `emit` inside.

    A group that has all its rows takes `at_once` of them together, of which they are a multiple.
    """
    count = extent_of(rows)
    start = expr.mul(space.add(GROUP, expr.ceildiv(count, per_group)), per_group)
    full = expr.add(start, per_group)
    positions = space.unflatten(space.add(ROW, count), [loop.extent for loop in rows])

    def over(end: Dim, step: int, inside: IndexEmitter) -> None:
        loop = scf.ForOp(inside(start), inside(end), inside(step))
        with ir.InsertionPoint(loop.body):
            here = inside.inside({FIRST: loop.induction_variable})
            together = [expr.add(expr.symbol(FIRST), number) for number in range(step)]
            emit(positions, [here.inside({ROW: here(row)}) for row in together])
            scf.YieldOp([])

    index = IndexEmitter(space, frame.symbols)
    over_groups = scf.ForOp(frame.first, frame.last, index(1))
    with ir.InsertionPoint(over_groups.body):
        inside = index.inside({GROUP: over_groups.induction_variable})
        if at_once == 1:
            over(expr.minimum(full, count), 1, inside)
        elif isinstance(count, int) and count % per_group == 0:
            over(full, at_once, inside)
        else:
            is_full = arith.cmpi(arith.CmpIPredicate.sle, inside(full), inside(count))
            branch = scf.IfOp(is_full, has_else=True)
            for block, end, step in ((branch.then_block, full, at_once), (branch.else_block, count, 1)):
                with ir.InsertionPoint(block):
                    over(end, step, inside.inside({}))
                    scf.YieldOp([])
        scf.YieldOp([])
