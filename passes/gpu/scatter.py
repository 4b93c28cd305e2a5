"""The strategy for a scatter that replaces: a work-group per line along the axis; the last update of an element wins.

The winning update is found before anything is stored: every thread does an atomic maximum of its update's number on the
target element, so that the greatest number remains in whatever order the threads run. Where the result takes the place
of its initial values, only the elements with updates are read and stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dialect.mlir import arith, ir, memref, scf
from passes.emit.arguments import is_same_place
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import load, store, strided_view
from passes.emit.regions import loop
from passes.loops.body import KernelBody
from passes.loops.domain import extent_of
from passes.loops.index_space import IndexSpace
from passes.loops.scatter import around, at, init_of, lines_of, place_of_index, root_of
from passes.scalar.registers import zero
from passes.schedule.choice import Choice, Scratch
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.record import PlacedAxis, constant_extent, kernel_item, on_threads
from passes.schedule.work import moved_bytes
from passes.to_linalg.node_writer import as_index
from passes.values import Value
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol
from tensorkiln.nodes import ScatterKind
from tensorkiln.schedule import KernelItem

from .branch import Test, holds, where, within
from .cost import ACCESS
from .frame import GROUP, THREAD, Frame
from .machine import Machine

NAME = "scatter"
MAX_LANES = 256
WINNER = DType.INT64
NONE = -1
"""The number of an element without an update."""


def find(body: KernelBody) -> KernelBody | None:
    """Match a scatter whose updates replace elements."""
    return body if root_of(body).text("reduction") == ScatterKind.NONE else None


def candidates(body: KernelBody, machine: Machine) -> Iterator[Choice]:
    """The one candidate: a work-group for each line of the result along the axis."""
    root = root_of(body)
    axis, groups = root.int("axis"), extent_of(lines_of(root))
    updates = root.operands[1].shape[axis]
    length = expr.maximum(root.shape[axis], updates)
    lanes, most = machine.device.wave, IndexSpace(body.function.symbols).largest(length)
    while lanes < MAX_LANES and lanes < most:
        lanes *= 2
    axes = [
        PlacedAxis("line", groups, "block"),
        PlacedAxis("lane", lanes, "thread"),
        PlacedAxis("element", root.shape[axis], "serial"),
        PlacedAxis("update", updates, "serial"),
    ]
    winners = Scratch(WINNER, expr.product(root.shape), is_private=False)
    item = kernel_item(body.function.name, axes, on_threads(groups, lanes, machine.runtime))

    def cost(at: Evaluate) -> Cost:
        cleared, given = (at(expr.product(value.shape)) for value in (root, root.operands[1]))
        accesses = (3 * cleared + 3 * given) * ACCESS
        return Cost(accesses / machine.device.lanes, moved_bytes(body, at) + 2 * cleared * WINNER.itemsize)

    yield Choice(NAME, item, (winners,), cost)


def realise(body: KernelBody, item: KernelItem, frame: Frame) -> None:
    """Emit the line of one work-group."""
    _Emission(body, frame, constant_extent(item, "lane")).emit()


class _Emission:
    def __init__(self, body: KernelBody, frame: Frame, lanes: int) -> None:
        self.root, self.frame, self.lanes = root_of(body), frame, lanes
        self.memory = {value: frame.buffers[number] for number, value in enumerate(body.operands)}
        self.axis = self.root.int("axis")
        self.indices, self.updates = self.root.operands[:2]
        self.winners = frame.buffers[-1]
        self.space = IndexSpace(body.function.symbols)
        init = init_of(self.root)
        self.is_begun = init is not None and is_same_place(self.memory[init], self.memory[self.root])

    def emit(self) -> None:
        lines, space = lines_of(self.root), self.space
        group = space.add(GROUP, extent_of(lines))
        space.add(THREAD, self.lanes)
        index = self.frame.index(space)
        here = index.at(lines, group)
        line = tuple(space.add(loop.name, loop.extent) for loop in lines)
        if self.is_begun:
            self._forget(line, here)
        else:
            self._clear(line, here)
        self.frame.machine.intrinsics.barrier()
        self._settle(line, here)
        self.frame.machine.intrinsics.barrier()
        if self.is_begun:
            self._overwrite(line, here)
        else:
            self._store(line, here)

    def _clear(self, line: Sequence[Dim], index: IndexEmitter) -> None:
        def element(position: Dim, here: IndexEmitter) -> None:
            none = arith.constant(ir.IntegerType.get_signless(64), NONE)
            store(WINNER, none, self.winners, self._address(self.root, line, position), here)

        self._over("cleared", self.root.shape[self.axis], index, element)

    def _forget(self, line: Sequence[Dim], index: IndexEmitter) -> None:
        """Clear the number of each element with an update."""

        def update(_: Dim, target: ir.Value, here: IndexEmitter) -> None:
            none = arith.constant(ir.IntegerType.get_signless(64), NONE)
            memref.AtomicRMWOp(arith.AtomicRMWKind.assign, none, target, [])

        self._each_update("forgotten", line, index, update)

    def _settle(self, line: Sequence[Dim], index: IndexEmitter) -> None:
        """Find the number of the last update of each element."""

        def update(position: Dim, target: ir.Value, here: IndexEmitter) -> None:
            number = arith.index_cast(ir.IntegerType.get_signless(64), here(position))
            memref.AtomicRMWOp(arith.AtomicRMWKind.maxs, number, target, [])

        self._each_update("update", line, index, update)

    def _overwrite(self, line: Sequence[Dim], index: IndexEmitter) -> None:
        """Store the last update of each element."""

        def update(position: Dim, target: ir.Value, here: IndexEmitter) -> None:
            kept = memref.LoadOp(target, []).result
            number = arith.index_cast(kept.type, here(position))
            branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, kept, number))
            with ir.InsertionPoint(branch.then_block):
                value = load(
                    self.updates.dtype, self.memory[self.updates], self._address(self.updates, line, position), here
                )
                place = self._address(self.root, line, symbol("place"))
                store(self.root.dtype, value, self.memory[self.root], place, here)
                scf.YieldOp([])

        self._each_update("stored", line, index, update)

    def _each_update(
        self,
        name: str,
        line: Sequence[Dim],
        index: IndexEmitter,
        emit: Callable[[Dim, ir.Value, IndexEmitter], None],
    ) -> None:
        """Share the updates of a line among the threads. `emit` takes the position of one that is not dropped, the
        number of its element in memory, and an emitter that knows `place`, its index.
        """

        def update(position: Dim, here: IndexEmitter) -> None:
            source = self.space.flatten(place_of_index(self.root, at(line, self.axis, position)), self.indices.shape)
            read = load(self.indices.dtype, self.memory[self.indices], source, here)
            found = here.inside({"place": as_index(self.indices.dtype, read)})
            extent = self.root.shape[self.axis]
            self.space.add("place", extent)
            # A negative index is a huge unsigned one.
            with where([("ult", symbol("place"), extent)], found) as inside:
                target = strided_view(self.winners, self._address(self.root, line, symbol("place")), (), (), inside)
                emit(position, target, inside)

        with where(self._reaching(line), index) as inside:
            self._over(name, self.updates.shape[self.axis], inside, update)

    def _store(self, line: Sequence[Dim], index: IndexEmitter) -> None:
        dtype, init, tests = self.root.dtype, init_of(self.root), self._reaching(line)

        def element(position: Dim, here: IndexEmitter) -> None:
            address = self._address(self.root, line, position)
            kept = load(WINNER, self.winners, address, here)
            none = arith.constant(kept.type, NONE)
            is_updated = arith.cmpi(arith.CmpIPredicate.ne, kept, none)
            if tests:
                is_updated = arith.andi(is_updated, holds(tests, here))
            branch = scf.IfOp(is_updated, [zero(dtype).type], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                winner = here.inside({"winner": arith.index_cast(ir.IndexType.get(), kept)})
                self.space.add("winner", self.updates.shape[self.axis])
                source = self._address(self.updates, line, symbol("winner"))
                scf.YieldOp([load(dtype, self.memory[self.updates], source, winner)])
            with ir.InsertionPoint(branch.else_block):
                begun = zero(dtype) if init is None else load(dtype, self.memory[init], address, here)
                scf.YieldOp([begun])
            store(dtype, branch.results[0], self.memory[self.root], address, here)

        self._over("stored", self.root.shape[self.axis], index, element)

    def _reaching(self, line: Sequence[Dim]) -> list[Test]:
        """Whether there are updates for a line, which may lie beside them."""
        return within(line, around(self.updates, self.axis), self.space)

    def _over(self, name: str, extent: Dim, index: IndexEmitter, emit: Callable[[Dim, IndexEmitter], None]) -> None:
        """Share `extent` positions among the threads."""
        with loop(name, symbol(THREAD), extent, self.lanes, index) as here:
            emit(self.space.add(name, extent), here)

    def _address(self, value: Value, line: Sequence[Dim], position: Dim) -> Dim:
        return self.space.flatten(at(line, self.axis, position), value.shape)
