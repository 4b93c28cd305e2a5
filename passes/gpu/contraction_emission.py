"""The code of one tile of a contraction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialect.mlir import ir, scf
from passes.emit.accumulation import Product, identity
from passes.emit.emission import Emitter
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import Memory, load, store
from passes.loops.accesses import Access
from passes.loops.body import KernelBody
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop, extent_of
from passes.scalar import cast
from passes.scalar.registers import from_memory, stored_type, to_memory, to_register, to_scalar, zero
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .branch import holds, where
from .frame import GROUP, THREAD, Frame
from .tiles import SIDE, Tiles

THREADS = SIDE * SIDE
UNROLL = 4
"""Products that a thread adds to each of its results between two tests of the loop."""
FIRST_ROW, FIRST_COLUMN, FIRST_STEP = "first_row", "first_column", "first_step"


class ContractionEmission:
    """Emits one kernel. Shared memory: the left tile `[step][row]`, the right `[step][column]`, the result's."""

    def __init__(self, body: KernelBody, parts: Contraction, tiles: Tiles, frame: Frame) -> None:
        self.body, self.parts, self.dtype, self.tiles, self.frame = body, parts, parts.dtype, tiles, frame
        self.product = Product(parts.dtype, parts.rounding, frame.machine.traits)
        self.left, self.right, self.result = frame.shared
        self.count = {"row": extent_of(parts.rows), "column": extent_of(parts.columns), "step": extent_of(parts.depth)}

    def emit(self) -> None:
        """Emit the work-group that runs this code."""
        space, parts, tiles = self.body.space, self.parts, self.tiles
        row_tiles = expr.ceildiv(self.count["row"], tiles.rows)
        column_tiles = expr.ceildiv(self.count["column"], tiles.columns)
        counts = (extent_of(parts.batch), row_tiles, column_tiles)
        batch, row_tile, column_tile = space.unflatten(space.add(GROUP, expr.product(counts)), counts)
        space.add(THREAD, THREADS)
        index = IndexEmitter(space, self.frame.names)
        names = self._places(parts.batch, batch, index)
        names[FIRST_ROW] = index(expr.mul(row_tile, tiles.rows))
        names[FIRST_COLUMN] = index(expr.mul(column_tile, tiles.columns))
        space.add(FIRST_ROW, self.count["row"])
        space.add(FIRST_COLUMN, self.count["column"])
        here = index.inside(names)
        self._keep_result(self._products(here), here)
        self.frame.machine.intrinsics.barrier()
        self._finish(here)

    def _places(self, loops: Sequence[Loop], flat: Dim, index: IndexEmitter) -> dict[str, ir.Value]:
        """The indices of `loops` at their flattened position."""
        places = self.body.space.unflatten(flat, [loop.extent for loop in loops])
        return {loop.name: index(at) for loop, at in zip(loops, places, strict=False)}

    def _products(self, index: IndexEmitter) -> list[ir.Value]:
        """The thread's results, by rows, summed over all of the depth."""
        tiles, space = self.tiles, self.body.space
        start = identity("sum", self.dtype)
        count = tiles.thread_rows * tiles.thread_columns
        steps = scf.ForOp(index(0), index(self.count["step"]), index(tiles.depth), [start] * count)
        with ir.InsertionPoint(steps.body):
            space.add(FIRST_STEP, self.count["step"])
            here = index.inside({FIRST_STEP: steps.induction_variable})
            self._fetch(self.parts.left, self.parts.rows, "row", tiles.rows, self.left, here)
            self._fetch(self.parts.right, self.parts.columns, "column", tiles.columns, self.right, here)
            self.frame.machine.intrinsics.barrier()
            sums = self._multiply(steps.inner_iter_args, here)
            self.frame.machine.intrinsics.barrier()
            scf.YieldOp(sums)
        return list(steps.results)

    def _fetch(
        self, access: Access, across: Sequence[Loop], name: str, width: int, tile: ir.Value, index: IndexEmitter
    ) -> None:
        """Copy the tile of an operand to shared memory, as `[step][across]`, with zeros behind its ends."""
        space, depth = self.body.space, self.tiles.depth
        loop = scf.ForOp(index(symbol(THREAD)), index(depth * width), index(THREADS))
        with ir.InsertionPoint(loop.body):
            place = f"{name}_place"
            here = index.inside({place: loop.induction_variable})
            flat = space.add(place, depth * width)
            if self._is_contiguous(access, across):
                step, inside = expr.floordiv(flat, width), expr.floormod(flat, width)
            else:
                step, inside = expr.floormod(flat, depth), expr.floordiv(flat, depth)
            at = {name: expr.add(symbol(f"first_{name}"), inside), "step": expr.add(symbol(FIRST_STEP), step)}
            tests = [("ult", position, self.count[which]) for which, position in at.items()]
            branch = scf.IfOp(holds(tests, here), [stored_type(self.dtype)], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                names = self._within(at, {name: across, "step": self.parts.depth}, here)
                emitter = self._emitter(here.inside(names), self._inputs())
                scf.YieldOp([to_memory(self.dtype, self._widened(access.load.dtype, emitter(access.load)))])
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp([to_memory(self.dtype, zero(self.dtype))])
            value = from_memory(self.dtype, branch.results[0])
            store(self.dtype, value, tile, expr.add(expr.mul(step, width), inside), here)
            scf.YieldOp([])

    def _widened(self, source: DType, value: ir.Value) -> ir.Value:
        return to_register(self.dtype, cast(source, self.dtype, to_scalar(source, value), traits=self.product.traits))

    def _is_contiguous(self, access: Access, across: Sequence[Loop]) -> bool:
        """Whether memory runs along `across` rather than along the depth."""
        strides = {
            loop.name: stride for loop, stride in zip(self.body.stages[0].domain.loops, access.strides, strict=True)
        }
        return strides[across[-1].name] == 1

    def _within(
        self, at: Mapping[str, Dim], loops: Mapping[str, Sequence[Loop]], index: IndexEmitter
    ) -> dict[str, ir.Value]:
        """The indices of several groups of loops, each at a position that is known to be below its end."""
        names: dict[str, ir.Value] = {}
        for which, position in at.items():
            here = index.inside({which: index(position)})
            self.body.space.add(which, self.count[which])
            names |= self._places(loops[which], symbol(which), here)
        return names

    def _multiply(self, sums: Sequence[ir.Value], index: IndexEmitter) -> list[ir.Value]:
        tiles, space = self.tiles, self.body.space
        loop = scf.ForOp(index(0), index(tiles.depth), index(UNROLL), list(sums))
        with ir.InsertionPoint(loop.body):
            here = index.inside({"product": loop.induction_variable})
            first = space.add("product", tiles.depth)
            totals = list(loop.inner_iter_args)
            for number in range(UNROLL):
                step = expr.add(first, number)
                lefts = self._share(self.left, step, tiles.rows, tiles.thread_rows, self._thread_row, here)
                rights = self._share(self.right, step, tiles.columns, tiles.thread_columns, self._thread_column, here)
                pairs = [(left, right) for left in lefts for right in rights]
                totals = [self.product.added(*pair, total) for total, pair in zip(totals, pairs, strict=True)]
            scf.YieldOp(totals)
        return list(loop.results)

    _thread_row: Dim = expr.floordiv(symbol(THREAD), SIDE)
    _thread_column: Dim = expr.floormod(symbol(THREAD), SIDE)

    def _share(
        self, tile: ir.Value, step: Dim, width: int, count: int, thread: Dim, index: IndexEmitter
    ) -> list[ir.Value]:
        """The thread's elements of one step of a tile: neighbours, so that they are loaded at once."""
        first = expr.add(expr.mul(step, width), expr.mul(thread, count))
        return [
            to_scalar(self.dtype, load(self.dtype, tile, expr.add(first, number), index)) for number in range(count)
        ]

    def _keep_result(self, sums: Sequence[ir.Value], index: IndexEmitter) -> None:
        """Store the thread's results to the shared tile."""
        tiles = self.tiles
        for number, total in enumerate(sums):
            row, column = divmod(number, tiles.thread_columns)
            row_place = expr.add(expr.mul(self._thread_row, tiles.thread_rows), row)
            column_place = expr.add(expr.mul(self._thread_column, tiles.thread_columns), column)
            place = expr.add(expr.mul(row_place, tiles.columns), column_place)
            store(self.dtype, to_register(self.dtype, total), self.result, place, index)

    def _finish(self, index: IndexEmitter) -> None:
        """Store the tile, and compute from it what the kernel's maps make of it."""
        space, tiles = self.body.space, self.tiles
        loop = scf.ForOp(index(symbol(THREAD)), index(tiles.rows * tiles.columns), index(THREADS))
        with ir.InsertionPoint(loop.body):
            place = space.add("place", tiles.rows * tiles.columns)
            here = index.inside({"place": loop.induction_variable})
            at = {
                "row": expr.add(symbol(FIRST_ROW), expr.floordiv(place, tiles.columns)),
                "column": expr.add(symbol(FIRST_COLUMN), expr.floormod(place, tiles.columns)),
            }
            with where([("ult", position, self.count[which]) for which, position in at.items()], here) as inside:
                names = self._within(at, {"row": self.parts.rows, "column": self.parts.columns}, inside)
                self._result(place, inside.inside(names))
            scf.YieldOp([])

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
            for entry, value in zip(stage.stores, self._emitter(index, memory).stored(stage), strict=True):
                store(entry.root.dtype, value, buffers[entry.operand], stage.domain.address, index)

    def _inputs(self) -> Memory:
        return Memory(dict(enumerate(self.frame.buffers)), {}, self.frame.entry)

    def _emitter(self, index: IndexEmitter, memory: Memory) -> Emitter:
        return Emitter(self.body.nodes, index, memory, self.frame.machine.traits)
