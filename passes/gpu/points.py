"""The strategy for maps over the same loops: neighbouring threads compute neighbouring elements.

A thread computes as many elements as its widest load holds. The last thread may have fewer: it computes them one by
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from dialect.mlir import arith, ir
from passes.emit.emission import Emitter
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import Memory, register
from passes.emit.regions import branches, loop
from passes.loops.accesses import loads
from passes.loops.body import KernelBody, Stage
from passes.loops.collapse import collapse
from passes.loops.domain import extent_of
from passes.origins import at_stage
from passes.scalar.registers import stored_type
from passes.schedule.choice import Choice
from passes.schedule.record import PlacedAxis, constant_extent, kernel_item, on_threads
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol
from tensorkiln.schedule import KernelItem

from .branch import holds, where
from .cost import points_cost
from .frame import GROUP, THREAD, Frame
from .machine import Machine
from .vector_access import SCALAR, VectorAccess, load_vector, store_vector, vector_access, widest_access

NAME = "points"
THREADS = 256
ITEM = "item"
"""Index name of a thread's first element, in units of the elements per thread."""


def find(body: KernelBody) -> KernelBody | None:
    """Match maps whose loops are all rows, and merge adjacent loops."""
    is_map = all(stage.combine is None and stage.domain.loops == body.rows for stage in body.stages)
    return collapse(body) if is_map else None


def candidates(body: KernelBody, machine: Machine) -> Iterator[Choice]:
    """Work-groups of whole warps, with as many elements per thread as its widest load holds, or one."""
    for width in dict.fromkeys((widest_access(body).width if body.rows else 1, 1)):
        yield _choice(body, width, machine)


def _choice(body: KernelBody, width: int, machine: Machine) -> Choice:
    groups = expr.ceildiv(extent_of(body.rows), THREADS * width)
    axes = [PlacedAxis("group", groups, "block"), PlacedAxis("thread", THREADS, "thread")]
    if width > 1:
        axes.append(PlacedAxis("element", width, "vec", width=width))
    item = kernel_item(body.function.name, axes, on_threads(groups, THREADS, machine.runtime))
    return Choice(NAME, item, (), partial(points_cost, body, width, machine))


def realise(body: KernelBody, item: KernelItem, frame: Frame) -> None:
    """Emit the points of one work-group."""
    width = constant_extent(item, "element")
    _Emission(body, vector_access(body, width), frame).emit()


class _Emission:
    def __init__(self, body: KernelBody, access: VectorAccess, frame: Frame) -> None:
        self.body, self.access, self.frame = body, access, frame

    def emit(self) -> None:
        space, width, count = self.body.space, self.access.width, extent_of(self.body.rows)
        group = space.add(GROUP, expr.ceildiv(count, THREADS * width))
        item = expr.add(expr.mul(group, THREADS), space.add(THREAD, THREADS))
        index = self.frame.index(space)
        items = index.inside({ITEM: index(item)})
        first = expr.mul(space.add(ITEM, expr.ceildiv(count, width)), width)
        if width == 1 or expr.floormod(count, width) == 0:
            with where([("ult", symbol(ITEM), expr.floordiv(count, width))], items) as here:
                self._points(first, self.access, here)
            return
        for is_whole, region in branches(holds([("ult", symbol(ITEM), expr.floordiv(count, width))], items), items):
            with region as here:
                if is_whole:
                    self._points(first, self.access, here)
                else:
                    # The rest that fills no vector; most threads start behind the end and do nothing.
                    with loop("point", first, expr.minimum(count, expr.add(first, width)), 1, here) as inside:
                        self._points(space.add("point", count), SCALAR, inside)

    def _points(self, first: Dim, access: VectorAccess, index: IndexEmitter) -> None:
        """Emit the elements `first … first + access.width - 1`, stage by stage."""
        body, point = self.body, index.at(self.body.rows, first)
        lanes = [point]
        for lane in range(1, access.width):
            name = body.rows[-1].name
            lanes.append(index.inside({**point.names, name: arith.addi(point.names[name], index(lane))}))
        memories = [self._memory() for _ in lanes]
        for stage in body.stages:
            with at_stage(body.nodes, stage):
                self._stage(stage, access, lanes, memories)

    def _memory(self) -> Memory:
        """The buffers, with local operands in registers."""
        body, frame = self.body, self.frame
        bases = {
            number: register(frame.entry, stored_type(value.dtype)) if body.is_local(number) else frame.buffers[number]
            for number, value in enumerate(body.operands)
        }
        own = {entry.operand: stage.domain.address for stage in body.stages for entry in stage.stores}
        return Memory(bases, {number: address for number, address in own.items() if body.is_local(number)}, frame.entry)

    def _stage(
        self, stage: Stage, access: VectorAccess, lanes: Sequence[IndexEmitter], memories: Sequence[Memory]
    ) -> None:
        loaded: list[dict[int, ir.Value]] = [{} for _ in lanes]
        for load in loads(stage.elements, self.body.nodes):
            if id(load) in access.loads and self._is_aligned(load.operand, load.dtype, access):
                base = self.frame.buffers[load.operand]
                read = load_vector(load, base, access.width, lanes[0])
                for values, value in zip(loaded, read, strict=True):
                    values[id(load)] = value
        traits = self.frame.machine.traits
        emitters = [
            Emitter(self.body.nodes, index, memory, traits, values)
            for index, memory, values in zip(lanes, memories, loaded, strict=True)
        ]
        stored = zip(*(emitter.stored(stage) for emitter in emitters), strict=True)
        for entry, values in zip(stage.stores, stored, strict=True):
            if entry.operand in access.stores and self._is_aligned(entry.operand, entry.root.dtype, access):
                base = self.frame.buffers[entry.operand]
                store_vector(entry.root.dtype, values, base, stage.domain.address, lanes[0])
                continue
            for value, index, memory in zip(values, lanes, memories, strict=True):
                memory.store(stage, entry, value, index)

    def _is_aligned(self, operand: int, dtype: DType, access: VectorAccess) -> bool:
        """Whether the operand is in a buffer aligned to a whole vector."""
        if self.body.is_local(operand):
            return False
        return self.frame.alignments[operand] % (access.width * dtype.itemsize) == 0
