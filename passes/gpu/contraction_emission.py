"""The code of one tile of a contraction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dialect.mlir import ir, scf
from passes.emit.accumulation import Product, identity
from passes.emit.emission import Emitter
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import Memory, load, store
from passes.emit.regions import loop
from passes.loops.accesses import Access
from passes.loops.body import KernelBody
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop, extent_of
from passes.origins import at_stage
from passes.scalar import cast
from passes.scalar.registers import register_type, to_register, to_scalar, zero
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol

from .branch import Test, holds, where
from .frame import GROUP, THREAD, Frame
from .tiles import SIDE, THREADS, Tiles, place_of, stride

UNROLLED = 128
"""Products of a thread per iteration of the loop, at most `MOST_STEPS` for each of its results."""
MOST_STEPS = 8
FIRST_ROW, FIRST_COLUMN, FIRST_STEP = "first_row", "first_column", "first_step"


@dataclass(frozen=True, slots=True)
class _Operand:
    """A factor: its load, its loops besides the depth, and its shared tile, `width` elements across."""

    name: str
    access: Access
    loops: Sequence[Loop]
    width: int
    tile: ir.Value


class ContractionEmission:
    """Emits one kernel. Shared memory: the left tile `[step][row]`, the right `[step][column]`, and result rows."""

    def __init__(self, body: KernelBody, parts: Contraction, tiles: Tiles, frame: Frame) -> None:
        self.body, self.parts, self.dtype, self.tiles, self.frame = body, parts, parts.dtype, tiles, frame
        self.product = Product(parts.dtype, parts.rounding, frame.machine.traits)
        self.left, self.right, self.result = frame.shared
        self.at_once = tiles.rows_at_once(parts.dtype.itemsize)
        self.count = {"row": extent_of(parts.rows), "column": extent_of(parts.columns), "step": extent_of(parts.depth)}

    def emit(self) -> None:
        """Emit the code of a work-group."""
        space, parts, tiles = self.body.space, self.parts, self.tiles
        row_tiles = expr.ceildiv(self.count["row"], tiles.rows)
        column_tiles = expr.ceildiv(self.count["column"], tiles.columns)
        counts = (extent_of(parts.batch), row_tiles, column_tiles)
        batch, row_tile, column_tile = space.unflatten(space.add(GROUP, expr.product(counts)), counts)
        space.add(THREAD, THREADS)
        index = self.frame.index(space)
        here = index.at(parts.batch, batch)
        firsts = {FIRST_ROW: expr.mul(row_tile, tiles.rows), FIRST_COLUMN: expr.mul(column_tile, tiles.columns)}
        here = here.inside({name: here(first) for name, first in firsts.items()})
        space.add(FIRST_ROW, self.count["row"])
        space.add(FIRST_COLUMN, self.count["column"])
        with at_stage(self.body.nodes, self.body.stages[0]):
            sums = self._products(here)
        for row in range(0, tiles.thread_rows, self.at_once):
            if row:
                self.frame.machine.intrinsics.barrier()
            self._keep_results(sums[row * tiles.thread_columns :], here)
            self.frame.machine.intrinsics.barrier()
            self._finish(row, here)

    def _products(self, index: IndexEmitter) -> list[ir.Value]:
        """The thread's results, row by row, summed over the whole depth."""
        tiles, space = self.tiles, self.body.space
        operands = (
            _Operand("row", self.parts.left, self.parts.rows, tiles.rows, self.left),
            _Operand("column", self.parts.right, self.parts.columns, tiles.columns, self.right),
        )
        start = [identity("sum", self.dtype)] * (tiles.thread_rows * tiles.thread_columns)
        first = [value for operand in operands for value in self._fetched(operand, 0, index)]
        steps = scf.ForOp(index(0), index(self.count["step"]), index(tiles.depth), [*start, *first])
        with ir.InsertionPoint(steps.body):
            following = expr.add(space.add(FIRST_STEP, self.count["step"]), tiles.depth)
            here = index.inside({FIRST_STEP: steps.induction_variable})
            carried = iter(steps.inner_iter_args)
            sums = [next(carried) for _ in start]
            for operand in operands:
                self._keep(operand, carried, here)
            self.frame.machine.intrinsics.barrier()
            # These loads overlap with the multiplication.
            fetched = [value for operand in operands for value in self._fetched(operand, following, here)]
            sums = self._multiply(sums, here)
            self.frame.machine.intrinsics.barrier()
            scf.YieldOp([*sums, *fetched])
        return list(steps.results)[: len(start)]

    def _shares(self, operand: _Operand) -> Iterator[tuple[Dim, Dim, list[Test]]]:
        """The step and the place across of each element that a thread loads of an operand's tile, and the tests for
        having one.
        """
        size = self.tiles.depth * operand.width
        for number in range(-(-size // THREADS)):
            flat = expr.add(symbol(THREAD), number * THREADS)
            # The size of a tile is a power of two: all threads have equally many elements, or some threads have one.
            has_one: list[Test] = [("ult", flat, size)] if size < THREADS else []
            if self._is_contiguous(operand.access, operand.loops):
                yield expr.floordiv(flat, operand.width), expr.floormod(flat, operand.width), has_one
            else:
                yield expr.floormod(flat, self.tiles.depth), expr.floordiv(flat, self.tiles.depth), has_one

    def _fetched(self, operand: _Operand, first: Dim, index: IndexEmitter) -> list[ir.Value]:
        """A thread's elements of an operand's tile from step `first` on; zeros beyond its ends."""
        found: list[ir.Value] = []
        name, read = operand.name, operand.access.load
        memory = Memory(dict(enumerate(self.frame.buffers)), {}, self.frame.entry)
        for step, inside, has_one in self._shares(operand):
            at = {name: expr.add(symbol(f"first_{name}"), inside), "step": expr.add(first, step)}
            tests: list[Test] = [*has_one, *(("ult", position, self.count[which]) for which, position in at.items())]
            # Outside the branch, common parts are computed once for all elements.
            point = self._within(at, {name: operand.loops, "step": self.parts.depth}, index)
            branch = scf.IfOp(holds(tests, index), [register_type(self.dtype)], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                factor = to_scalar(read.dtype, self._emitter(point, memory)(read))
                factor = cast(read.dtype, self.dtype, factor, traits=self.product.traits)
                scf.YieldOp([to_register(self.dtype, factor)])
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp([zero(self.dtype)])
            found.append(branch.results[0])
        return found

    def _keep(self, operand: _Operand, values: Iterator[ir.Value], index: IndexEmitter) -> None:
        """Store a thread's loaded elements to the tile of an operand, as `[step][across]`."""
        step_size = stride(operand.width, self.dtype.itemsize)
        for step, inside, has_one in self._shares(operand):
            with where(has_one, index) as here:
                store(self.dtype, next(values), operand.tile, expr.add(expr.mul(step, step_size), inside), here)

    def _is_contiguous(self, access: Access, across: Sequence[Loop]) -> bool:
        """Whether memory is contiguous along `across` and not along the depth."""
        domain = self.body.stages[0].domain
        strides = {loop.name: step for loop, step in zip(domain.loops, access.strides, strict=True)}
        return strides[across[-1].name] == 1

    def _within(self, at: Mapping[str, Dim], loops: Mapping[str, Sequence[Loop]], index: IndexEmitter) -> IndexEmitter:
        """An emitter for a point of several groups of loops, each at a position known to be in range."""
        names: dict[str, ir.Value] = {}
        for which, position in at.items():
            here = index.inside({which: index(position)})
            self.body.space.add(which, self.count[which])
            names |= here.at(loops[which], symbol(which)).names
        return index.inside(names)

    def _multiply(self, sums: Sequence[ir.Value], index: IndexEmitter) -> list[ir.Value]:
        tiles, space = self.tiles, self.body.space
        unrolled = min(MOST_STEPS, UNROLLED // len(sums))
        steps = scf.ForOp(index(0), index(tiles.depth), index(unrolled), list(sums))
        with ir.InsertionPoint(steps.body):
            here = index.inside({"product": steps.induction_variable})
            first = space.add("product", tiles.depth)
            totals = list(steps.inner_iter_args)
            for number in range(unrolled):
                step = expr.add(first, number)
                lefts = self._share(self.left, step, tiles.rows, tiles.thread_rows, self._thread_row, here)
                rights = self._share(self.right, step, tiles.columns, tiles.thread_columns, self._thread_column, here)
                pairs = [(left, right) for left in lefts for right in rights]
                totals = [self.product.added(*pair, total) for total, pair in zip(totals, pairs, strict=True)]
            scf.YieldOp(totals)
        return list(steps.results)

    _thread_row: Dim = expr.floordiv(symbol(THREAD), SIDE)
    _thread_column: Dim = expr.floormod(symbol(THREAD), SIDE)

    def _share(
        self, tile: ir.Value, step: Dim, width: int, count: int, thread: Dim, index: IndexEmitter
    ) -> list[ir.Value]:
        """The thread's elements of one step of a tile."""
        first, size = expr.mul(step, stride(width, self.dtype.itemsize)), self.dtype.itemsize
        places = (expr.add(first, place_of(thread, count, number, size)) for number in range(count))
        return [to_scalar(self.dtype, load(self.dtype, tile, place, index)) for place in places]

    def _keep_results(self, sums: Sequence[ir.Value], index: IndexEmitter) -> None:
        """Store the first of these result rows to shared memory, after those of the threads above."""
        tiles, first_row = self.tiles, expr.mul(self._thread_row, self.at_once)
        for number, total in enumerate(sums[: self.at_once * tiles.thread_columns]):
            row, column = divmod(number, tiles.thread_columns)
            across = place_of(self._thread_column, tiles.thread_columns, column, self.dtype.itemsize)
            place = expr.add(expr.mul(expr.add(first_row, row), tiles.columns), across)
            store(self.dtype, to_register(self.dtype, total), self.result, place, index)

    def _finish(self, row: int, index: IndexEmitter) -> None:
        """Store the rows of every thread from `row` on, and apply the maps to them."""
        space, tiles = self.body.space, self.tiles
        size = SIDE * self.at_once * tiles.columns
        with loop("place", symbol(THREAD), size, THREADS, index) as here:
            place = space.add("place", size)
            kept, column = expr.floordiv(place, tiles.columns), expr.floormod(place, tiles.columns)
            thread_row, behind = expr.floordiv(kept, self.at_once), expr.floormod(kept, self.at_once)
            of_thread = place_of(thread_row, tiles.thread_rows, row, self.dtype.itemsize)
            at = {
                "row": expr.add(symbol(FIRST_ROW), of_thread, behind),
                "column": expr.add(symbol(FIRST_COLUMN), column),
            }
            with where([("ult", position, self.count[which]) for which, position in at.items()], here) as inside:
                self._result(place, self._within(at, {"row": self.parts.rows, "column": self.parts.columns}, inside))

    def _result(self, place: Dim, index: IndexEmitter) -> None:
        first, *maps = self.body.stages
        buffers = self.frame.buffers
        for entry in first.stores:
            if not self.body.is_local(entry.operand):
                value = load(self.dtype, self.result, place, index)
                store(self.dtype, value, buffers[entry.operand], first.domain.address, index)
        own = [entry.operand for entry in first.stores]
        bases = dict(enumerate(buffers)) | dict.fromkeys(own, self.result)
        memory = Memory(bases, {}, self.frame.entry, dict.fromkeys(own, place))
        for stage in maps:
            with at_stage(self.body.nodes, stage):
                self._emitter(index, memory).store(stage)

    def _emitter(self, index: IndexEmitter, memory: Memory) -> Emitter:
        return Emitter(self.body.nodes, index, memory, self.frame.machine.traits)
