"""A row of a scatter on a CPU: a line along the axis, or lines side by side, of all places or of a part of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from dialect.mlir import arith, ir, vector
from passes.emit.accumulation import updated
from passes.emit.arguments import is_same_place
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import load, store, strided_view
from passes.emit.regions import Region, branches, loop, where
from passes.loops.index_space import Index, IndexSpace
from passes.loops.scatter import around, at, init_of, place_of_index, takes_rows
from passes.scalar.registers import stored_type, zero
from passes.to_linalg.node_writer import as_index
from passes.values import Value
from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.nodes import ScatterKind

from .machine import Machine

SIDE_BY_SIDE: Final = 128
"""Most lines of a row."""
BESIDE, VECTOR = "beside", "beside_first"
"""The loops over the lines of a row, and over vectors of them."""


def side_of(root: Value) -> int:
    """The most lines of a row."""
    last = len(root.shape) - 1
    if root.int("axis") == last:
        return 1
    extent = root.shape[last]
    return max(1, min(SIDE_BY_SIDE, extent)) if isinstance(extent, int) else SIDE_BY_SIDE


def lanes_of(root: Value, machine: Machine) -> int:
    """The elements of a vector of updates that are applied together; 1 if each is applied for itself."""
    dtype = root.dtype
    is_plain = not dtype.is_bool and (root.text("reduction") == ScatterKind.NONE or not dtype.is_half)
    lanes = machine.vectors.lanes(dtype)
    return lanes if is_plain and takes_rows(root) and side_of(root) >= lanes else 1


class Row:
    """Emits one row: `line` is its position, in which the last loop runs over the lines side by side."""

    def __init__(
        self,
        root: Value,
        row: Index,
        space: IndexSpace,
        memory: Mapping[Value, ir.Value],
        machine: Machine,
        parts: int = 1,
    ) -> None:
        self.root, self.space, self.memory, self.machine = root, space, memory, machine
        self.axis, self.side, self.lanes = root.int("axis"), side_of(root), lanes_of(root, machine)
        self.indices, self.updates = root.operands[:2]
        init = init_of(root)
        self.is_begun = init is not None and is_same_place(memory[init], memory[root])
        length = root.shape[self.axis]
        self.begin: Dim = 0
        self.end: Dim = length
        if parts > 1:
            size = expr.ceildiv(length, parts)
            self.begin = expr.mul(row[-1], size)
            self.end = expr.minimum(expr.add(self.begin, size), length)
            row = row[:-1]
        self.line: Index = row
        self.first: Dim = 0
        self.count: Dim = self.side
        if self.side > 1:
            self.first = expr.mul(row[-1], self.side)
            self.line = (*row[:-1], expr.add(self.first, space.add(BESIDE, self.side)))
            left = expr.sub(root.shape[-1], self.first)
            self.count = self.side if space.is_nonnegative(expr.sub(left, self.side)) else expr.minimum(self.side, left)

    def emit(self, index: IndexEmitter) -> None:
        """Emit the row at the current insertion point."""
        if not self.is_begun:
            self._begin_all(index)
        others = around(self.updates, self.axis)
        reach = [expr.sub(expr.sub(extent, 1), place) for place, extent in zip(self.line, others, strict=True)]
        is_whole = not others or others[-1] == self.root.shape[-1]
        is_beside = [each for each in reach if BESIDE in expr.free_symbols(each) and not is_whole]
        is_around = [each for each in reach if BESIDE not in expr.free_symbols(each)]
        is_reached = _all([each for each in is_around if not self.space.is_nonnegative(each)], index)
        steps = self.updates.shape[self.axis]
        with ExitStack() as regions:
            inside = index if is_reached is None else regions.enter_context(where(is_reached, index))
            here = regions.enter_context(loop("update", 0, steps, 1, inside))
            step = self.space.add("update", steps)
            if self.lanes > 1:
                self._update_row(step, others[-1], is_whole, here)
            else:
                self._update_each(step, is_beside, here)

    def _over_lines(self, count: Dim, index: IndexEmitter, emit: Callable[[int, IndexEmitter], None]) -> None:
        """Emit a loop over `count` lines by vectors, and one over the rest line by line."""
        if self.side == 1:
            emit(1, index)
            return
        if self.lanes == 1:
            with loop(BESIDE, 0, count, 1, index) as inside:
                emit(1, inside)
            return
        is_even = isinstance(count, int) and count % self.lanes == 0
        with loop(VECTOR, 0, count, self.lanes, index) as inside:
            first = self.space.add(VECTOR, self.side)
            if is_even:
                emit(self.lanes, inside.inside({BESIDE: inside(first)}))
                return
            fits = arith.cmpi(arith.CmpIPredicate.sge, inside(expr.sub(count, first)), inside(self.lanes))
            for is_whole, region in branches(fits, inside):
                with region as here:
                    if is_whole:
                        emit(self.lanes, here.inside({BESIDE: here(first)}))
                        continue
                    with loop(BESIDE, first, count, 1, here) as each:
                        emit(1, each)

    def _begin_all(self, index: IndexEmitter) -> None:
        with loop("zero", self.begin, self.end, 1, index) as here:
            place = self.space.add("zero", self.root.shape[self.axis])
            self._over_lines(self.count, here, lambda lanes, inside: self._begin(place, lanes, inside))

    def _begin(self, place: Dim, lanes: int, index: IndexEmitter) -> None:
        """Store the initial values."""
        init, address = init_of(self.root), self.space.flatten(at(self.line, self.axis, place), self.root.shape)
        value = self._zero(lanes) if init is None else self._load(init, address, lanes, index)
        self._store(value, address, lanes, index)

    def _update_each(self, step: Dim, is_beside: Sequence[Dim], index: IndexEmitter) -> None:
        """Apply the updates of a position line by line."""
        with ExitStack() as regions:
            here = index
            if self.side > 1:
                here = regions.enter_context(loop(BESIDE, 0, self.count, 1, here))
            if (has_update := _all(is_beside, here)) is not None:
                here = regions.enter_context(where(has_update, here))
            with self._inside(step, self.line, here) as inside:
                self._update(step, 1, inside)

    def _update_row(self, step: Dim, extent: Dim, is_whole: bool, index: IndexEmitter) -> None:
        """Apply the updates of a position, which have one place, to all lines."""
        given = expr.maximum(0, expr.minimum(self.count, expr.sub(extent, self.first)))
        with self._inside(step, self.line, index) as inside:
            count = self.count if is_whole else given
            self._over_lines(count, inside, lambda lanes, here: self._update(step, lanes, here))

    def _inside(self, step: Dim, line: Sequence[Dim], index: IndexEmitter) -> Region:
        """The region that runs if the index of an update is within the result; `place` is that index."""
        source = self.space.flatten(place_of_index(self.root, at(line, self.axis, step)), self.indices.shape)
        place = as_index(self.indices.dtype, load(self.indices.dtype, self.memory[self.indices], source, index))
        if self.begin == 0:
            # A negative index is a huge unsigned one.
            is_inside = arith.cmpi(arith.CmpIPredicate.ult, place, index(self.end))
        else:
            # A part may begin beyond the end.
            is_from = arith.cmpi(arith.CmpIPredicate.sge, place, index(self.begin))
            is_inside = arith.andi(is_from, arith.cmpi(arith.CmpIPredicate.slt, place, index(self.end)))
        return where(is_inside, index.inside({"place": place}))

    def _update(self, step: Dim, lanes: int, index: IndexEmitter) -> None:
        source = self.space.flatten(at(self.line, self.axis, step), self.updates.shape)
        place = self.space.add("place", self.root.shape[self.axis])
        target = self.space.flatten(at(self.line, self.axis, place), self.root.shape)
        value, kind = self._load(self.updates, source, lanes, index), self.root.text("reduction")
        if kind != ScatterKind.NONE:
            before = self._load(self.root, target, lanes, index)
            value = updated(kind, self.root.dtype, before, value, self.machine.traits)
        self._store(value, target, lanes, index)

    def _zero(self, lanes: int) -> ir.Value:
        value = zero(self.root.dtype)
        return value if lanes == 1 else vector.BroadcastOp(ir.VectorType.get([lanes], value.type), value).result

    def _load(self, value: Value, address: Dim, lanes: int, index: IndexEmitter) -> ir.Value:
        if lanes == 1:
            return load(value.dtype, self.memory[value], address, index)
        view = strided_view(self.memory[value], address, (lanes,), (1,), index)
        return vector.LoadOp(ir.VectorType.get([lanes], stored_type(value.dtype)), view, [index(0)]).result

    def _store(self, value: ir.Value, address: Dim, lanes: int, index: IndexEmitter) -> None:
        if lanes == 1:
            store(self.root.dtype, value, self.memory[self.root], address, index)
        else:
            vector.StoreOp(value, strided_view(self.memory[self.root], address, (lanes,), (1,), index), [index(0)])


def _all(conditions: Sequence[Dim], index: IndexEmitter) -> ir.Value | None:
    value: ir.Value | None = None
    for condition in conditions:
        holds = arith.cmpi(arith.CmpIPredicate.sge, index(condition), index(0))
        value = holds if value is None else arith.andi(value, holds)
    return value
