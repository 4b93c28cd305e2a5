"""The strategy for scatter: lines along the axis, walked in order, so that the last update wins.

A row is a line, or if the axis is not the last one, up to 128 lines that lie side by side: all of them are begun and
updated at each position, so whole cache lines are written. If they have one index, whole vectors are moved or combined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from passes.emit.index_emission import IndexEmitter
from passes.loops.body import KernelBody
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import Index, IndexSpace
from passes.loops.scatter import lines_of, root_of
from passes.schedule.choice import Choice
from passes.schedule.cost import Cost, Evaluate, at_typical
from passes.schedule.record import constant_extent, kernel_item, nested, on_processors, placed
from passes.schedule.work import moved_bytes
from passes.values import Value
from tensorkiln import expr
from tensorkiln.schedule import KernelItem

from .frame import Frame
from .machine import Machine
from .rows import for_each_row
from .scatter_row import BESIDE, Row, lanes_of, side_of

NAME = "scatter"
GROUP_POINTS = 16384
MAX_PARTS, PART_POINTS = 4, 1 << 19
"""Most parts of the lines, and the least updates of each."""
PART: Final = "part"
"""The loop over parts of the lines."""
BEGUN, UPDATE, ROW_UPDATE, VECTOR_UPDATE, LOOK_UP = 0.1, 4.0, 6.0, 1.0, 2.0
"""Cycles to begin an element of the result, to apply an update, to find the place of a row of updates, to apply a
vector of them, and to see that a place belongs to another part."""


def candidates(body: KernelBody, machine: Machine) -> Iterator[Choice]:
    """The one candidate: work-groups of result lines along the axis, enough to amortise their start."""
    root = root_of(body)
    axis, side, lanes = root.int("axis"), side_of(root), lanes_of(root, machine)
    length, updates = root.shape[axis], root.operands[1]
    parts = _parts(body, machine)
    rows = _rows(root, parts)
    per_group = max(1, GROUP_POINTS // max(length * side, 1)) if parts == 1 and isinstance(length, int) else 1
    groups = expr.ceildiv(extent_of(rows), per_group)
    beside = [] if side == 1 else [Loop(BESIDE, side)]
    steps = [Loop("update", updates.shape[axis]), *beside]
    in_order = nested(steps, width=lanes) if lanes > 1 else nested(steps, scalar="ordered")
    axes = placed(rows, [nested([Loop("zero", length), *beside]), in_order], {})
    item = kernel_item(body.function.name, axes, on_processors(groups, per_group))

    def cost(at: Evaluate) -> Cost:
        begun, given = (at(expr.product(value.shape)) for value in (root, updates))
        per_update = (ROW_UPDATE / side + VECTOR_UPDATE / lanes) if lanes > 1 else UPDATE
        looked_up = (parts - 1) * LOOK_UP * given / side
        return Cost(begun * BEGUN + given * per_update + looked_up, moved_bytes(body, at))

    def updating(at: Evaluate) -> Cost:
        given = at(expr.product(updates.shape))
        per_update = (ROW_UPDATE / side + VECTOR_UPDATE / lanes) if lanes > 1 else UPDATE
        return Cost(given * per_update, 2 * given * updates.dtype.itemsize)

    yield Choice(NAME, item, (), cost, updating)


def realise(body: KernelBody, item: KernelItem, frame: Frame) -> None:
    """Begin each line unless it holds its initial values, then apply its updates in order, dropping those with an index
    out of range.
    """
    root, space = root_of(body), IndexSpace(body.function.symbols)
    memory = {value: frame.buffers[number] for number, value in enumerate(body.operands)}

    parts = constant_extent(item, PART)

    def emit_row(row: Index, index: IndexEmitter) -> None:
        Row(root, row, space, memory, frame.machine, parts).emit(index)

    for_each_row(frame, space, _rows(root, parts), item.context.upcasted, emit_row)


def _parts(body: KernelBody, machine: Machine) -> int:
    """The parts of the lines, each with a row of its own: several for few rows of many updates, if vectors are applied.

    Each part looks up the places of all updates.
    """
    root = root_of(body)
    if lanes_of(root, machine) == 1:
        return 1
    typical = at_typical(body.function.symbols, loops=body.extents)
    rows = max(1, typical(extent_of(_rows(root, 1))))
    work = typical(expr.product(root.operands[1].shape)) // (rows * PART_POINTS)
    return max(1, min(MAX_PARTS // rows, work, typical(root.shape[root.int("axis")])))


def _rows(root: Value, parts: int) -> list[Loop]:
    """The loops over rows: those over lines, of which the last is over blocks of lines if these lie side by side, and
    over parts of the lines if there are several.
    """
    lines, side = lines_of(root), side_of(root)
    if side > 1:
        lines[-1] = Loop(lines[-1].name, expr.ceildiv(lines[-1].extent, side))
    return [*lines, Loop(PART, parts)] if parts > 1 else lines
