"""The code of the rows of a work-group, stage by stage.

A value with one element per row is in a register of every lane. A value with many is in shared memory or in a buffer:
each lane stores some of its elements, and there is a barrier before any stage that reads it. Rows that pad the last
work-group repeat the last row, and store nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from dialect.mlir import arith, ir, scf
from passes.emit.accumulation import combined, identity
from passes.emit.emission import Emitter
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import Memory, register, store
from passes.loops.accesses import loads
from passes.loops.body import KernelBody, Stage, Store, inner_loops
from passes.loops.domain import Loop, extent_of
from passes.loops.scalar_dag import Load
from passes.origins import at_stage
from passes.scalar import cast
from passes.scalar.registers import stored_type
from passes.schedule.sum_blocks import ACCUMULATOR_TERMS, TOTAL, sums_floats
from passes.schedule.tiling import row_size, row_start
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from .branch import Test, where
from .frame import GROUP, THREAD, Frame
from .reduction import Exchange, Lanes, combine_lanes

SERIAL_LANES = 32
"""Least results per row for which each lane reduces whole results of its own."""


class RowEmission:
    """Emits one kernel. `exchange` is shared memory by dtype; `in_shared` and `in_buffers` hold rows by operand."""

    def __init__(
        self,
        body: KernelBody,
        lanes: Lanes,
        frame: Frame,
        exchange: Mapping[DType, ir.Value],
        in_shared: Mapping[int, ir.Value],
        in_buffers: Mapping[int, ir.Value],
    ) -> None:
        self.body, self.lanes, self.frame, self.exchange = body, lanes, frame, exchange
        computed = (entry.operand for stage in body.stages for entry in stage.stores)
        self.scalars = {number for number in computed if row_size(body, number) == 1}
        self.memory = self._memory(in_shared, in_buffers)
        self.unread: dict[int, Stage] = {}
        self.reductions: Counter[DType] = Counter()
        self.is_live: list[Test] = []

    def _memory(self, in_shared: Mapping[int, ir.Value], in_buffers: Mapping[int, ir.Value]) -> Memory:
        body = self.body
        bases: dict[int, ir.Value] = {}
        starts: dict[int, Dim] = {}
        for number, value in enumerate(body.operands):
            if number in self.scalars:
                bases[number] = register(self.frame.entry, stored_type(value.dtype))
                starts[number] = row_start(body, number)
            elif number in in_shared:
                bases[number] = in_shared[number]
                slot = expr.mul(self.lanes.slot, row_size(body, number))
                starts[number] = expr.sub(row_start(body, number), slot)
            else:
                bases[number] = in_buffers[number] if number in in_buffers else self.frame.buffers[number]
        return Memory(bases, starts, self.frame.entry)

    def emit(self) -> None:
        """Emit the code of a work-group."""
        body, lanes, space = self.body, self.lanes, self.body.space
        count = extent_of(body.rows)
        group = space.add(GROUP, expr.ceildiv(count, lanes.rows))
        space.add(THREAD, lanes.threads)
        index = self.frame.index(space)
        row = expr.add(expr.mul(group, lanes.rows), lanes.slot)
        if lanes.lanes == 1:
            # Without barriers, padding threads can just be skipped.
            with where([("ult", row, count)], index) as inside:
                self._row(row, inside)
            return
        if lanes.rows > 1:
            self.is_live = [("ult", row, count)]
            row = expr.minimum(row, expr.sub(count, 1))
        self._row(row, index)

    def _row(self, row: Dim, index: IndexEmitter) -> None:
        body, space = self.body, self.body.space
        count = extent_of(body.rows)
        here = index.inside({"row": index(row)})
        here = here.at(body.rows, space.add("row", count))
        for stage in body.stages:
            with at_stage(body.nodes, stage):
                self._wait_for(stage)
                self._stage(stage, here)

    def _wait_for(self, stage: Stage) -> None:
        """Emit a barrier before a stage that reads what other lanes have stored since the last one."""
        found = loads(stage.elements, self.body.nodes)
        if self.lanes.lanes > 1 and any(
            load.operand in self.unread and not self._is_own(load, stage, self.unread[load.operand]) for load in found
        ):
            self.frame.machine.intrinsics.barrier()
            self.unread.clear()

    def _is_own(self, load: Load, reader: Stage, writer: Stage) -> bool:
        """Whether a lane reads only elements that it stored itself: both stages iterate over the same points."""
        mine, theirs = inner_loops(self.body, reader), inner_loops(self.body, writer)
        if writer.combine is not None or [loop.extent for loop in mine] != [loop.extent for loop in theirs]:
            return False
        if reader.combine is not None and not all(loop.is_reduction for loop in mine):
            return False
        names = {loop.name: expr.symbol(other.name) for loop, other in zip(mine, theirs, strict=True)}
        return expr.substitute(load.address, names) == writer.domain.address

    def _stage(self, stage: Stage, index: IndexEmitter) -> None:
        loops = inner_loops(self.body, stage)
        results, reduced = ([each for each in loops if each.is_reduction is wanted] for wanted in (False, True))
        if stage.combine is None:
            self._map(stage, loops, index)
        elif not results:
            self._keep(stage.stores[0], self._reduced(stage, loops, index), stage, index)
        elif self.body.space.largest(extent_of(results)) >= min(SERIAL_LANES, self.lanes.lanes):
            self._shared(stage, results, index, lambda here: [self._accumulated(stage, reduced, 0, 1, here)])
        else:
            self._result_by_result(stage, results, reduced, index)

    def _map(self, stage: Stage, loops: Sequence[Loop], index: IndexEmitter) -> None:
        if not loops:
            for entry, value in zip(stage.stores, self._emitter(index).stored(stage), strict=True):
                self._keep(entry, value, stage, index)
            return
        self._shared(stage, loops, index, lambda here: self._emitter(here).stored(stage))

    def _shared(
        self, stage: Stage, loops: Sequence[Loop], index: IndexEmitter, made: Callable[[IndexEmitter], list[ir.Value]]
    ) -> None:
        """Store what is `made` at all points of `loops`, which the lanes share."""

        def point(here: IndexEmitter, _: Sequence[ir.Value]) -> list[ir.Value]:
            for entry, value in zip(stage.stores, made(here), strict=True):
                self._store(entry, value, stage, here)
            return []

        with where(self.is_live, index) as inside:
            self._over(loops, self.lanes.lane, extent_of(loops), self.lanes.lanes, inside, [], point)

    def _reduced(self, stage: Stage, loops: Sequence[Loop], index: IndexEmitter) -> ir.Value:
        """The reduction of a row, available in all of its lanes."""
        assert stage.combine is not None, "only a reduction is reduced"
        dtype = stage.elements[0].dtype
        partial = self._accumulated(stage, loops, self.lanes.lane, self.lanes.lanes, index)
        exchange: Exchange | None = None
        if dtype in self.exchange:
            exchange = Exchange(self.exchange[dtype], self.reductions[dtype] % 2 * self.lanes.exchange_elements)
            self.reductions[dtype] += 1
        return combine_lanes(stage.combine, dtype, partial, self.lanes, exchange, index, self.frame.machine)

    def _accumulated(self, stage: Stage, loops: Sequence[Loop], first: Dim, step: int, index: IndexEmitter) -> ir.Value:
        """The reduction of the points `first, first + step, …` of the reduction loops."""
        assert stage.combine is not None, "only a reduction is reduced"
        kind, element = stage.combine, stage.elements[0]
        dtype, traits = element.dtype, self.frame.machine.traits

        def point(here: IndexEmitter, before: Sequence[ir.Value]) -> list[ir.Value]:
            return [combined(kind, dtype, before[0], self._emitter(here)(element), traits)]

        def part(begin: Dim, end: Dim, here: IndexEmitter) -> ir.Value:
            return self._over(loops, begin, end, step, here, [identity(kind, dtype)], point)[0]

        space, extent, size = self.body.space, extent_of(loops), step * ACCUMULATOR_TERMS
        if not sums_floats(stage) or space.largest(extent) <= size:
            return part(first, extent, index)
        blocks = expr.ceildiv(extent, size)
        total = scf.ForOp(index(0), index(blocks), index(1), [identity("sum", TOTAL)])
        with ir.InsertionPoint(total.body):
            name = f"block_{len(space.extents)}"
            start = expr.mul(space.add(name, blocks), size)
            here = index.inside({name: total.induction_variable})
            block = part(expr.add(start, first), expr.minimum(expr.add(start, size), extent), here)
            scf.YieldOp([arith.addf(total.inner_iter_args[0], cast(dtype, TOTAL, block, traits=traits))])
        return cast(TOTAL, dtype, total.results[0], traits=traits)

    def _result_by_result(
        self, stage: Stage, results: Sequence[Loop], reduced: Sequence[Loop], index: IndexEmitter
    ) -> None:
        def point(here: IndexEmitter, _: Sequence[ir.Value]) -> list[ir.Value]:
            value = self._reduced(stage, reduced, here)
            if self.lanes.exchange_elements:
                # The next result uses the same memory.
                self.frame.machine.intrinsics.barrier()
            with where([*self.is_live, *self._is_first_lane], here) as first:
                self._store(stage.stores[0], value, stage, first)
            return []

        self._over(results, 0, extent_of(results), 1, index, [], point)

    @property
    def _is_first_lane(self) -> list[Test]:
        return [("eq", self.lanes.lane, 0)] if self.lanes.lanes > 1 else []

    def _keep(self, entry: Store, value: ir.Value, stage: Stage, index: IndexEmitter) -> None:
        """Hold the one element of a row in a register, and store it if it leaves the kernel."""
        self._store(entry, value, stage, index)
        if not self.body.is_local(entry.operand):
            with where([*self.is_live, *self._is_first_lane], index) as here:
                store(entry.root.dtype, value, self.frame.buffers[entry.operand], stage.domain.address, here)

    def _store(self, entry: Store, value: ir.Value, stage: Stage, index: IndexEmitter) -> None:
        self.memory.store(stage, entry, value, index)
        if entry.operand not in self.scalars:
            self.unread[entry.operand] = stage

    def _emitter(self, index: IndexEmitter) -> Emitter:
        return Emitter(self.body.nodes, index, self.memory, self.frame.machine.traits)

    def _over(
        self,
        loops: Sequence[Loop],
        first: Dim,
        last: Dim,
        step: int,
        index: IndexEmitter,
        carried: Sequence[ir.Value],
        point: Callable[[IndexEmitter, Sequence[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Loop over the points `first, first + step, …` of `loops` below `last`; returns the final carried values."""
        space = self.body.space
        loop = scf.ForOp(index(first), index(last), index(step), list(carried))
        with ir.InsertionPoint(loop.body):
            name = f"point_{len(space.extents)}"
            here = index.inside({name: loop.induction_variable}).at(loops, space.add(name, extent_of(loops)))
            scf.YieldOp(point(here, loop.inner_iter_args))
        return list(loop.results)
