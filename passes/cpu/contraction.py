"""The strategy for contractions: pack blocks, multiply them in register tiles, finish each block while it is in cache.

A kernel is one contraction and the maps behind it that read its result element by element (bias, activation, residual).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from dialect.mlir import arith, func, ir, scf, vector
from passes.emit.accumulation import Product
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import Memory, strided_view
from passes.emit.stage_emission import StageEmitter
from passes.loops.accesses import Access, loads
from passes.loops.body import KernelBody, Stage
from passes.loops.contraction import Contraction, contraction_of, match_contraction
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import linear_form
from passes.loops.substitution import over
from passes.schedule.choice import Choice, Scratch, kernel_item, stage_flops
from passes.schedule.panels import Tiling, tiling_of
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, evaluate, symbol
from tensorkiln.schedule import KernelItem, Vectorize

from .blocking import Blocking, choose_blocking, group_counts
from .frame import Frame
from .machine import Machine
from .micro_kernel import micro_kernel
from .offset_table import fill_tables
from .pack_function import Panels, pack
from .packing import MAX_ELEMENTS, Packed, Source, packed_of, source_of
from .shared_functions import module_of

NAME = "contraction"


@dataclass(frozen=True, slots=True)
class Problem:
    """A contraction kernel, with its operands as they are packed."""

    body: KernelBody
    parts: Contraction
    left: Source | Packed
    right: Source | Packed


def find(body: KernelBody) -> Problem | None:
    """A contraction first, then only maps over its parallel loops."""
    found = contraction_of(body)
    if found is None:
        return None
    body, stage = found[0], found[0].stages[0]
    parts = _storable(found[1], stage)
    sizes = [expr.product(body.operands[a.load.operand].shape) for a in (parts.left, parts.right)]
    if not parts.columns or any(body.space.largest(size) >= MAX_ELEMENTS for size in sizes):
        return None
    names = [loop.name for loop in stage.domain.loops]
    left = _operand(parts.left, parts, parts.rows, (parts.rows, parts.depth), names)
    right = _operand(parts.right, parts, parts.columns, (parts.depth, parts.columns), names)
    return None if left is None or right is None else Problem(body, parts, left, right)


def _operand(
    access: Access,
    parts: Contraction,
    tiled: Sequence[Loop],
    loops: tuple[Sequence[Loop], Sequence[Loop]],
    names: Sequence[str],
) -> Source | Packed | None:
    if access.panels is None:
        return source_of(access, *loops)
    return packed_of(access, access.panels, parts.batch, tiled, parts.depth, names)


def _storable(parts: Contraction, stage: Stage) -> Contraction:
    """With outer columns moved to the batch until the result is linear in the flattened columns."""
    batch, columns = list(parts.batch), list(parts.columns)
    while columns:
        form = linear_form(stage.domain.address, [loop.name for loop in columns])
        assert form is not None, "a stage stores at the row-major address of its own loops"
        pairs = zip(form[1], form[1][1:], columns[1:], strict=False)
        if all(outer == expr.mul(inner, loop.extent) for outer, inner, loop in pairs):
            break
        batch.append(columns.pop(0))
    return replace(parts, batch=tuple(batch), columns=tuple(columns))


def choose(problem: Problem, machine: Machine) -> Choice:
    """Block for the registers and caches of the machine."""
    parts, blocking = problem.parts, choose_blocking(problem.parts, machine.vectors)
    groups = expr.mul(*group_counts(parts, blocking))
    tiles: dict[str, tuple[Dim, ...]] = {}
    for loops, sizes in (
        (parts.rows, (blocking.block_rows, blocking.tile_rows)),
        (parts.columns, (blocking.block_columns, blocking.tile_columns)),
        (parts.depth, (blocking.block_depth,)),
    ):
        tiles[loops[-1].name] = sizes
    outer = (*parts.batch, *parts.rows)
    item = kernel_item(
        problem.body.function.name, outer, [(*parts.depth, *parts.columns)], tiles, groups, 1, blocking.lanes
    )
    flops = reduce(expr.add, (stage_flops(problem.body, stage) for stage in problem.body.stages), 0)
    return Choice(NAME, item, tuple(_scratch(problem, blocking)), groups, flops)


def tilings(body: KernelBody, machine: Machine) -> Sequence[Tiling]:
    """Panels as the micro-kernel reads them: of register tiles, over all of the depth."""
    problem, (stage, *_) = find(body), body.stages
    parts = match_contraction(stage.domain, stage.combine, stage.elements[0], body.nodes, body.space)
    if problem is None or parts is None:
        return ()
    blocking = choose_blocking(problem.parts, machine.vectors)
    read = [load.operand for each in body.stages for load in loads(each.elements, body.nodes)]
    found: list[Tiling] = []
    for access, tiled, tile in (
        (parts.left, parts.rows, blocking.tile_rows),
        (parts.right, parts.columns, blocking.tile_columns),
    ):
        load = access.load
        # What is widened as it is packed takes less memory as it is.
        is_alone = read.count(load.operand) == 1 and load.operand < len(body.function.arguments)
        if is_alone and load.dtype is parts.dtype:
            tiling = tiling_of(load, body.operands[load.operand], tile, tiled, (*parts.batch, *parts.depth))
            found += [] if tiling is None else [tiling]
    return found


def _scratch(problem: Problem, blocking: Blocking) -> list[Scratch]:
    """Packed blocks of what has to be packed, the result block, then the tables of both operands."""
    dtype = problem.parts.dtype
    blocks = [
        Scratch(dtype, elements)
        for source, elements in (
            (problem.left, blocking.block_rows * blocking.block_depth),
            (problem.right, blocking.block_depth * blocking.block_columns),
        )
        if isinstance(source, Source)
    ]
    blocks.append(Scratch(dtype, blocking.block_rows * blocking.block_columns))
    for source, outer, inner in (
        (problem.left, blocking.block_rows, blocking.block_depth),
        (problem.right, blocking.block_depth, blocking.block_columns),
    ):
        blocks += [Scratch(DType.INT32, outer)] * len(source.forms)
        blocks += [Scratch(DType.INT32, inner)] * source.inner_tables
    return blocks


def realise(problem: Problem, item: KernelItem, frame: Frame) -> None:
    """Emit the work-groups of the frame, whose buffers are the operands that leave the kernel, then scratch."""
    _Emission(problem, _recorded(problem.parts, item), frame).groups()


def _recorded(parts: Contraction, item: KernelItem) -> Blocking:
    """The blocking that `choose` wrote into the schedule."""
    tiles = dict(zip((axis.name for axis in item.iter.axes), item.iter.tiles, strict=True))
    sizes = [size for loops in (parts.rows, parts.columns, parts.depth) for size in tiles[loops[-1].name]]
    block_rows, tile_rows, block_columns, tile_columns, block_depth = (evaluate(size, {}) for size in sizes)
    lanes = next(hint.width for hint in item.hints if isinstance(hint, Vectorize))
    return Blocking(lanes, tile_rows, tile_columns, block_rows, block_columns, block_depth)


class _Emission:
    def __init__(self, problem: Problem, blocking: Blocking, frame: Frame) -> None:
        self.problem, self.blocking, self.frame = problem, blocking, frame
        shared = problem.body.local_from
        self.bases = dict(enumerate(frame.buffers[:shared]))
        scratch = iter(frame.buffers[shared:])
        self.left, self.right = (
            next(scratch) if isinstance(source, Source) else self.bases[source.operand]
            for source in (problem.left, problem.right)
        )
        self.block, *tables = scratch
        count = len(problem.left.forms) + problem.left.inner_tables
        self.left_tables, self.right_tables = tables[:count], tables[count:]
        self.module = module_of(frame.entry)
        self.traits = frame.machine.traits
        product = Product(problem.parts.dtype, problem.parts.rounding, self.traits)
        self.kernel = micro_kernel(self.module, product, blocking, by_step=isinstance(problem.left, Packed))

    def groups(self) -> None:
        space, parts, blocking = self.problem.body.space, self.problem.parts, self.blocking
        counts = group_counts(parts, blocking)
        index = IndexEmitter(space, self.frame.symbols)
        groups, last = expr.mul(*counts), self.frame.last
        if not expr.is_nonnegative(expr.sub(groups, 1), space.symbols):
            # Without a batch one work-group is launched all the same.
            last = arith.MinSIOp(last, index(groups)).result
        over_groups = scf.ForOp(self.frame.first, last, index(1))
        with ir.InsertionPoint(over_groups.body):
            group = space.add("group", groups)
            here = index.inside({"group": over_groups.induction_variable})
            batch, row_block, column_block = space.unflatten(group, counts)
            positions = space.unflatten(batch, [loop.extent for loop in parts.batch])
            names = {loop.name: here(place) for loop, place in zip(parts.batch, positions, strict=False)}
            first_row, first_column = (
                expr.mul(row_block, blocking.block_rows),
                expr.mul(column_block, blocking.block_columns),
            )
            rows = expr.minimum(blocking.block_rows, expr.sub(extent_of(parts.rows), first_row))
            columns = expr.minimum(blocking.block_columns, expr.sub(extent_of(parts.columns), first_column))
            block = (first_row, first_column, rows, columns)
            names |= {name: here(dim) for name, dim in zip(BLOCK, block, strict=True)}
            space.bound("rows", 1, blocking.block_rows)
            space.bound("columns", 1, blocking.block_columns)
            space.bound("steps", 1, blocking.block_depth)
            space.add("first_row", extent_of(parts.rows))
            space.add("first_column", extent_of(parts.columns))
            self._group(here.inside(names))
            scf.YieldOp([])

    def _group(self, index: IndexEmitter) -> None:
        blocking = self.blocking
        row_tiles = expr.ceildiv(symbol("rows"), blocking.tile_rows)
        column_tiles = expr.ceildiv(symbol("columns"), blocking.tile_columns)
        self._clear(index(expr.mul(row_tiles, blocking.tile_rows)), index)
        right, left = self.problem.right, self.problem.left
        padded_rows = expr.mul(row_tiles, blocking.tile_rows)
        if isinstance(right, Source):
            self._fill_inner(right, self.right_tables, symbol("first_column"), symbol("columns"), index)
        if isinstance(left, Source):
            self._fill_outer(left, self.left_tables, symbol("first_row"), padded_rows, index)
        depth = extent_of(self.problem.parts.depth)
        blocks = scf.ForOp(index(0), index(depth), index(blocking.block_depth))
        with ir.InsertionPoint(blocks.body):
            index.space.add("first_step", depth)
            here = index.inside({"first_step": blocks.induction_variable})
            steps = expr.minimum(blocking.block_depth, expr.sub(depth, symbol("first_step")))
            here = here.inside({"steps": here(steps)})
            first, count = symbol("first_step"), symbol("steps")
            if isinstance(left, Source):
                self._fill_inner(left, self.left_tables, first, count, here)
            if isinstance(right, Source):
                self._fill_outer(right, self.right_tables, first, count, here)
                self._pack_right(right, column_tiles, here)
            if isinstance(left, Source):
                self._pack_left(left, padded_rows, here)
            panels = (
                *self._panels(left, "first_row", blocking.tile_rows),
                *self._panels(right, "first_column", blocking.tile_columns),
            )
            sizes = [here(dim) for dim in (row_tiles, symbol("columns"), count, *panels, blocking.block_columns)]
            func.CallOp([], self.kernel, [self.left, self.right, self.block, *sizes])
            scf.YieldOp([])
        self._finish(index)

    def _panels(self, source: Source | Packed, start: str, tile: int) -> tuple[Dim, Dim]:
        """Where the first panel of the block is in its memory, and the elements from there to the next."""
        if isinstance(source, Source):
            return 0, tile * self.blocking.block_depth
        # A block begins where a panel does.
        at = expr.mul(symbol(start), source.size // source.tile)
        return expr.add(source.first, at, expr.mul(symbol("first_step"), source.tile)), source.size

    def _clear(self, rows: ir.Value, index: IndexEmitter) -> None:
        """Zero the result block."""
        blocking = self.blocking
        kind = ir.VectorType.get([blocking.lanes], ir.MemRefType(self.block.type).element_type)
        zero = vector.BroadcastOp(
            kind, arith.constant(kind.element_type, 0.0 if self.problem.parts.dtype.is_float else 0)
        )
        end = arith.muli(rows, index(blocking.block_columns))
        loop = scf.ForOp(index(0), end, index(blocking.lanes))
        with ir.InsertionPoint(loop.body):
            here = index.inside({"place": loop.induction_variable})
            target = strided_view(self.block, symbol("place"), (blocking.lanes,), (1,), here)
            vector.StoreOp(zero.result, target, [here(0)])
            scf.YieldOp([])

    def _fill_outer(
        self, source: Source, tables: Sequence[ir.Value], start: Dim, count: Dim, index: IndexEmitter
    ) -> None:
        forms = [(form.base, form.outer) for form in source.forms]
        fill_tables(self.module, tables[: len(forms)], forms, source.outer, start, count, index)

    def _fill_inner(
        self, source: Source, tables: Sequence[ir.Value], start: Dim, count: Dim, index: IndexEmitter
    ) -> None:
        forms = [(0, form.inner) for form in source.forms]
        fill_tables(self.module, tables[len(forms) :], forms, source.inner, start, count, index)

    def _pack_right(self, source: Source, column_tiles: Dim, index: IndexEmitter) -> None:
        """`[column tile][step][tile_columns]`"""
        blocking, tile = self.blocking, self.blocking.tile_columns
        counts = (symbol("steps"), symbol("columns"), expr.mul(column_tiles, tile))
        layout = (tile, tile, blocking.block_depth * tile)
        self._pack(source, self.right, self.right_tables, counts, "first_column", layout, index)

    def _pack_left(self, source: Source, padded_rows: Dim, index: IndexEmitter) -> None:
        """`[row][block_depth]`; the rows that fill up the last tile repeat the last row, whose products are dropped"""
        depth = self.blocking.block_depth
        counts = (padded_rows, symbol("steps"), symbol("steps"))
        layout = (depth, depth, 0)
        self._pack(source, self.left, self.left_tables, counts, "first_step", layout, index)

    def _pack(
        self,
        source: Source,
        packed: ir.Value,
        tables: Sequence[ir.Value],
        counts: tuple[Dim, Dim, Dim],
        first: str,
        layout: tuple[int, int, int],
        index: IndexEmitter,
    ) -> None:
        memory = self.bases[source.operand]
        panels = Panels(self.problem.parts.dtype, layout, self.blocking.lanes, self.traits)
        pack(self.module, source, memory, packed, tables, counts, symbol(first), panels, index)

    def _finish(self, index: IndexEmitter) -> None:
        """Store the block, and compute from it what the kernel's maps make of it."""
        rows = scf.ForOp(index(0), index(symbol("rows")), index(1))
        with ir.InsertionPoint(rows.body):
            here = index.inside({"row": rows.induction_variable})
            column = Loop("column", symbol("columns"))
            here.space.add("row", symbol("rows"))
            here.space.add("column", symbol("columns"))
            stages = self._stages(column)
            block = len(self.problem.body.operands)
            place = expr.add(expr.mul(symbol("row"), self.blocking.block_columns), symbol("column"))
            memory = Memory({**self.bases, block: self.block}, {}, self.frame.entry, {block: place})
            emit = StageEmitter(self.problem.body.nodes, memory, self.frame.machine.traits)
            for stage in stages:
                if stage.stores:
                    emit(stage, (column,), here)
            scf.YieldOp([])

    def _stages(self, column: Loop) -> list[Stage]:
        """The stages over the columns of one row of the block, the contraction as a map that reads the block."""
        body, parts = self.problem.body, self.problem.parts
        values = _positions(body, parts.rows, expr.add(symbol("first_row"), symbol("row")))
        values |= _positions(body, parts.columns, expr.add(symbol("first_column"), symbol("column")))
        block = len(body.operands)
        first = over(body, body.stages[0], (column,), values)
        (made,) = first.stores
        load = body.nodes.load(made.root.dtype, block, first.domain.address, ())
        kept = [replace(entry, element=load) for entry in first.stores if not body.is_local(entry.operand)]
        stages = [replace(first, combine=None, elements=(load,), stores=tuple(kept))]
        for stage in body.stages[1:]:
            stages.append(over(body, stage, (column,), values, {made.operand: block}))
        return stages


BLOCK = ("first_row", "first_column", "rows", "columns")
"""Names of where the block of a work-group begins and how large it is."""


def _positions(body: KernelBody, loops: Sequence[Loop], flat: Dim) -> dict[str, Dim]:
    places = body.space.unflatten(flat, [loop.extent for loop in loops])
    return {loop.name: place for loop, place in zip(loops, places, strict=False)}
