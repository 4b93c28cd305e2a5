"""The strategy for a scatter that combines: each element of the result belongs to one thread.

A thread reads all indices of its lines in order and applies the updates of its own elements, so the result is the same
in whatever order the threads run. Neighbouring threads have neighbouring lines, unless the axis is the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dialect.mlir import ir
from passes.emit.accumulation import updated
from passes.emit.arguments import is_same_place
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import load, store
from passes.emit.regions import loop
from passes.loops.body import KernelBody
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import IndexSpace
from passes.loops.scatter import around, at, init_of, lines_of, place_of_index, root_of
from passes.scalar.registers import zero
from passes.schedule.choice import Choice
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.record import PlacedAxis, constant_extent, kernel_item, on_threads
from passes.schedule.work import moved_bytes
from passes.to_linalg.node_writer import as_index
from passes.values import Value
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol
from tensorkiln.nodes import ScatterKind
from tensorkiln.schedule import KernelItem

from .branch import where, within
from .cost import ACCESS, GUARDED
from .frame import GROUP, THREAD, Frame
from .machine import Machine

NAME = "combining"
LANES = 256
MAX_PARTS = 64
"""Most work-groups that share the elements of the same lines."""
PART = "part"


def find(body: KernelBody) -> KernelBody | None:
    """Match a scatter whose updates are combined with elements."""
    return None if root_of(body).text("reduction") == ScatterKind.NONE else body


def candidates(body: KernelBody, machine: Machine) -> Iterator[Choice]:
    """The one candidate: enough work-groups for all multiprocessors, as far as there are elements for all threads."""
    root, wave = root_of(body), machine.device.wave
    axis, rows, across = root.int("axis"), _rows(root, wave), _across(root, wave)
    space = IndexSpace(body.function.symbols)
    length, blocks = space.largest(root.shape[axis]), max(1, space.largest(extent_of(rows)))
    wanted = min(machine.device.multiprocessors // blocks, length // (LANES // across), MAX_PARTS)
    parts = 1
    while parts * 2 <= wanted:
        parts *= 2
    updates = root.operands[1].shape[axis]
    axes = [
        PlacedAxis("lines", extent_of(rows), "block"),
        PlacedAxis(PART, parts, "block"),
        PlacedAxis("lane", LANES, "thread"),
        PlacedAxis("element", root.shape[axis], "serial"),
        PlacedAxis("update", updates, "serial", scalar="ordered"),
    ]
    groups = expr.mul(extent_of(rows), parts)
    item = kernel_item(body.function.name, axes, on_threads(groups, LANES, machine.runtime))

    def cost(of: Evaluate) -> Cost:
        begun, given = (of(expr.product(value.shape)) for value in (root, root.operands[1]))
        read = of(expr.mul(groups, LANES, updates)) * (ACCESS + 2)
        return Cost(
            (read + (2 * begun + 3 * given) * ACCESS) / machine.device.lanes,
            moved_bytes(body, of),
            of(updates) * GUARDED,
        )

    yield Choice(NAME, item, (), cost)


def realise(body: KernelBody, item: KernelItem, frame: Frame) -> None:
    """Emit the elements of one thread."""
    _Emission(body, frame, constant_extent(item, PART)).emit()


def _across(root: Value, wave: int) -> int:
    """The lines side by side that a work-group has."""
    return 1 if root.int("axis") == len(root.shape) - 1 else wave


def _rows(root: Value, wave: int) -> list[Loop]:
    """The loops over lines, of which the last is over blocks of lines if these lie side by side."""
    lines, across = lines_of(root), _across(root, wave)
    if across > 1:
        lines[-1] = Loop(lines[-1].name, expr.ceildiv(lines[-1].extent, across))
    return lines


class _Emission:
    def __init__(self, body: KernelBody, frame: Frame, parts: int) -> None:
        self.root, self.frame, self.parts = root_of(body), frame, parts
        self.memory = {value: frame.buffers[number] for number, value in enumerate(body.operands)}
        self.axis, wave = self.root.int("axis"), frame.machine.device.wave
        self.rows, self.across = _rows(self.root, wave), _across(self.root, wave)
        self.indices, self.updates = self.root.operands[:2]
        self.space = IndexSpace(body.function.symbols)

    def emit(self) -> None:
        """Emit the thread at the current insertion point."""
        space, root = self.space, self.root
        group = space.add(GROUP, expr.mul(extent_of(self.rows), self.parts))
        thread = space.add(THREAD, LANES)
        here = self.frame.index(space).at([*self.rows, Loop(PART, self.parts)], group)
        line = tuple(space.add(loop.name, loop.extent) for loop in self.rows)
        owners = LANES // self.across
        own, beside = expr.floordiv(thread, self.across), expr.floormod(thread, self.across)
        owner = expr.add(expr.mul(space.add(PART, self.parts), owners), own)
        if self.across > 1:
            line = (*line[:-1], expr.add(expr.mul(line[-1], self.across), beside))
        length, init = root.shape[self.axis], init_of(root)
        is_begun = init is not None and is_same_place(self.memory[init], self.memory[root])
        with where(within(line, around(root, self.axis), space), here) as inside:
            if not is_begun:
                with loop("begun", owner, length, owners * self.parts, inside) as each:
                    self._begin(line, space.add("begun", length), each)
            with where(within(line, around(self.updates, self.axis), space), inside) as reached:
                steps = self.updates.shape[self.axis]
                with loop("update", 0, steps, 1, reached) as each:
                    self._update(line, space.add("update", steps), owner, owners * self.parts, each)

    def _begin(self, line: Sequence[Dim], position: Dim, index: IndexEmitter) -> None:
        address, init = self._address(self.root, line, position), init_of(self.root)
        value = zero(self.root.dtype) if init is None else self._load(init, address, index)
        store(self.root.dtype, value, self.memory[self.root], address, index)

    def _update(self, line: Sequence[Dim], step: Dim, owner: Dim, owners: int, index: IndexEmitter) -> None:
        """Apply an update if its element belongs to the thread."""
        root = self.root
        source = self.space.flatten(place_of_index(root, at(line, self.axis, step)), self.indices.shape)
        found = index.inside({"place": as_index(self.indices.dtype, self._load(self.indices, source, index))})
        extent = root.shape[self.axis]
        place = self.space.add("place", extent)
        # A negative index is a huge unsigned one.
        with (
            where([("ult", symbol("place"), extent)], found) as inside,
            where([("eq", expr.floormod(place, owners), owner)], inside) as own,
        ):
            target = self._address(root, line, place)
            before = self._load(root, target, own)
            update = self._load(self.updates, self._address(self.updates, line, step), own)
            value = updated(root.text("reduction"), root.dtype, before, update, self.frame.machine.traits)
            store(root.dtype, value, self.memory[root], target, own)

    def _load(self, value: Value, address: Dim, index: IndexEmitter) -> ir.Value:
        return load(value.dtype, self.memory[value], address, index)

    def _address(self, value: Value, line: Sequence[Dim], position: Dim) -> Dim:
        return self.space.flatten(at(line, self.axis, position), value.shape)
