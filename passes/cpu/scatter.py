"""The strategy for scatter: lines along the axis, walked in order, so that the last update wins.

A row is a line, or if the axis is not the last one, up to 128 lines that lie side by side: all of them are cleared and
updated at each position, so whole cache lines are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from dialect.mlir import arith, ir
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import load, store
from passes.emit.regions import loop, where
from passes.loops.body import KernelBody
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import Index, IndexSpace
from passes.loops.scatter import at, lines_of, root_of
from passes.scalar.registers import zero
from passes.schedule.choice import Choice
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.record import kernel_item, nested, on_processors, placed
from passes.schedule.work import moved_bytes
from passes.to_linalg.node_writer import as_index
from passes.values import Value
from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem

from .frame import Frame
from .machine import Machine
from .rows import for_each_row

NAME = "scatter"
GROUP_POINTS = 16384
SIDE_BY_SIDE: Final = 128
"""Most lines of a row."""
CLEARED, UPDATE = 0.1, 4.0
"""Cycles to clear an element of the result, and to apply an update."""


def candidates(body: KernelBody, machine: Machine) -> Iterator[Choice]:
    """The one candidate: work-groups of result lines along the axis, enough to amortise their start."""
    root = root_of(body)
    rows, axis, side = _rows(root), root.int("axis"), _side(root)
    length = root.shape[axis]
    per_group = max(1, GROUP_POINTS // max(length * side, 1)) if isinstance(length, int) else 1
    groups = expr.ceildiv(extent_of(rows), per_group)
    beside = [] if side == 1 else [Loop("beside", side)]
    updates = nested([Loop("update", root.operands[0].shape[axis]), *beside], scalar="ordered")
    axes = placed(rows, [nested([Loop("zero", length), *beside]), updates], {})
    item = kernel_item(body.function.name, axes, on_processors(groups, per_group))

    def cost(at: Evaluate) -> Cost:
        cleared, updates = (at(expr.product(value.shape)) for value in (root, root.operands[0]))
        return Cost(cleared * CLEARED + updates * UPDATE, moved_bytes(body, at))

    yield Choice(NAME, item, (), cost)


def realise(body: KernelBody, item: KernelItem, frame: Frame) -> None:
    """Clear each line, then apply its updates in order, dropping those with an index out of range."""
    root, space = root_of(body), IndexSpace(body.function.symbols)
    memory = {value: frame.buffers[number] for number, value in enumerate(body.operands)}

    def emit_row(row: Index, index: IndexEmitter) -> None:
        _emit_row(root, row, space, memory, index)

    for_each_row(frame, space, _rows(root), item.context.upcasted, emit_row)


def _side(root: Value) -> int:
    """The most lines of a row."""
    last = len(root.shape) - 1
    if root.int("axis") == last:
        return 1
    extent = root.shape[last]
    return max(1, min(SIDE_BY_SIDE, extent)) if isinstance(extent, int) else SIDE_BY_SIDE


def _rows(root: Value) -> list[Loop]:
    """The loops over rows: those over lines, of which the last is over blocks of lines if these lie side by side."""
    lines, side = lines_of(root), _side(root)
    if side > 1:
        lines[-1] = Loop(lines[-1].name, expr.ceildiv(lines[-1].extent, side))
    return lines


def _emit_row(
    root: Value, row: tuple[Dim, ...], space: IndexSpace, memory: Mapping[Value, ir.Value], index: IndexEmitter
) -> None:
    axis, dtype, side = root.int("axis"), root.dtype, _side(root)
    indices, updates = root.operands
    others = [extent for number, extent in enumerate(indices.shape) if number != axis]
    line, count = row, side
    if side > 1:
        first = expr.mul(row[-1], side)
        line = (*row[:-1], expr.add(first, space.add("beside", side)))
        left = expr.sub(root.shape[-1], first)
        count = side if space.is_nonnegative(expr.sub(left, side)) else expr.minimum(side, left)
    with ExitStack() as around:
        here = around.enter_context(loop("zero", 0, root.shape[axis], 1, index))
        if side > 1:
            here = around.enter_context(loop("beside", 0, count, 1, here))
        position = space.add("zero", root.shape[axis])
        store(dtype, zero(dtype), memory[root], space.flatten(at(line, axis, position), root.shape), here)
    is_whole = not others or others[-1] == root.shape[-1]
    reach = [expr.sub(expr.sub(extent, 1), place) for place, extent in zip(line, others, strict=True)]
    is_beside = [condition for condition in reach if "beside" in expr.free_symbols(condition) and not is_whole]
    is_around = [condition for condition in reach if "beside" not in expr.free_symbols(condition)]
    is_reached = _all([condition for condition in is_around if not space.is_nonnegative(condition)], index)
    last = index(indices.shape[axis])
    if is_reached is not None:
        last = arith.select(is_reached, last, index(0))
    with ExitStack() as around:
        here = around.enter_context(loop("update", 0, last, 1, index))
        if side > 1:
            here = around.enter_context(loop("beside", 0, count, 1, here))
        if (has_update := _all(is_beside, here)) is not None:
            here = around.enter_context(where(has_update, here))
        step = space.add("update", indices.shape[axis])
        source = space.flatten(at(line, axis, step), indices.shape)
        place = as_index(indices.dtype, load(indices.dtype, memory[indices], source, here))
        # A negative index is a huge unsigned one.
        is_inside = arith.cmpi(arith.CmpIPredicate.ult, place, here(root.shape[axis]))
        with where(is_inside, here) as inside:
            target = space.flatten(at(line, axis, space.add("place", root.shape[axis])), root.shape)
            found = inside.inside({"place": place})
            store(dtype, load(dtype, memory[updates], source, found), memory[root], target, found)


def _all(conditions: Sequence[Dim], index: IndexEmitter) -> ir.Value | None:
    value: ir.Value | None = None
    for condition in conditions:
        holds = arith.cmpi(arith.CmpIPredicate.sge, index(condition), index(0))
        value = holds if value is None else arith.andi(value, holds)
    return value
