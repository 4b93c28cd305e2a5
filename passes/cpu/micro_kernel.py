"""The inner loops of a contraction on packed operands: one function per element type and tile, shared by kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any, NamedTuple

from dialect.mlir import arith, ir, memref, scf, vector
from passes.emit.accumulation import Product
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import CACHE_LINE, NEAREST_CACHE, SECOND_CACHE, prefetch, strided_view
from passes.emit.regions import branches, loop, where
from passes.loops.index_space import IndexSpace
from passes.scalar import mlir_scalar
from passes.scalar.registers import zero
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol

from .blocking import Blocking
from .offset_table import entry_of, table_types
from .packing import SHORT_RUN
from .shared_functions import shared_function


class LeftSteps(NamedTuple):
    """Strides of the left operand in elements: between steps of the depth, and between rows of a tile.

    If it is read in place, offset tables say where each `run` of steps begins, and where each tile begins, or each row
    if rows have no common stride (None).
    """

    step: int
    row: int | None
    run: int = 0


class Prefetches(NamedTuple):
    """What a tile prefetches: its `result` while its products are added up; on the `right`, the panels of the next
    columns, of which each tile of rows fetches a share; on the `left`, for each run, that of the next tile of rows.
    """

    result: bool
    right: bool
    left: bool


class Results(NamedTuple):
    """How tiles are stored. With a `run`, the block holds so many columns of all its rows, then the next ones; without,
    row after row. If the block `is_exact`, only the part of a tile inside it is stored.
    """

    run: int = 0
    is_exact: bool = False


WHOLE_ROWS = Results()
FEW_TILES = 32
"""Most tiles of rows that share the prefetch of the next panels. More tiles use a panel for longer than it takes to
come from memory."""


def micro_kernel(
    module: ir.Operation,
    product: Product,
    blocking: Blocking,
    left: LeftSteps,
    right: int,
    *,
    last: int,
    ahead: Prefetches,
    results: Results = WHOLE_ROWS,
    emission: type[MicroKernel] | None = None,
) -> str:
    """The name of the function for these sizes in `module`, which is defined there if needed.

    `f(left, right, result, row tiles, rows, columns, depth, left first, left panel, right first, right panel, result
    first, stride, starts)` adds the product of panels to the result block, whose rows, or runs of columns, are `stride`
    elements apart, or stores it there if it `starts`. Each operand begins `first` elements into its memory, and each
    panel has `panel` elements. A panel on the left holds the `tile_rows` rows of a tile; one on the right holds `right`
    columns of each step, in whole vectors, of one tile, several, or a part of one. At most `last` vectors are computed
    of a last tile that needs no more. A left operand in place takes two tables after the result: the offsets of rows,
    and those of steps from there. Without an `emission`, tiles are multiplied in vectors.
    """
    kind = (
        f"_{left.step}_{'each' if left.row is None else left.row}_{left.run}_{right}"
        + (f"_{last}" if last < blocking.vectors else "")
        + f"_{results.run}" * (results.run > 0)
        + "_exact" * results.is_exact
        + "_result" * ahead.result
        + "_right" * ahead.right
        + "_left" * ahead.left
    )
    name = f"multiply_{product}_{blocking.tile_rows}x{blocking.tile_columns}_{blocking.lanes}{kind}"
    pointer, index = ir.MemRefType.get([], mlir_scalar(product.dtype)), ir.IndexType.get()

    def define(arguments: Sequence[ir.Value]) -> None:
        (emission or MicroKernel)(arguments, product, blocking, left, right, results, ahead).define(last)

    types = [*[pointer] * 3, *table_types(2 if left.run else 0), *[index] * 10, ir.IntegerType.get_signless(1)]
    return shared_function(module, name, types, define)


SIZES = ("left_first", "left_panel", "right_first", "right_panel", "result_first", "stride")


class MicroKernel:
    """Emits the loops over the tiles of a block, and the products of each tile in vectors."""

    def __init__(
        self,
        arguments: Sequence[ir.Value],
        product: Product,
        blocking: Blocking,
        of_left: LeftSteps,
        of_right: int,
        results: Results,
        ahead: Prefetches,
    ) -> None:
        self.product, self.blocking, self.of_left, self.of_right = product, blocking, of_left, of_right
        self.results, self.ahead, self.lanes = results, ahead, blocking.lanes
        self.left, self.right, self.result, *rest = arguments
        self.tables, rest = (rest[:2], rest[2:]) if of_left.run else ([], rest)
        self.row_tiles, rows, columns, self.depth, *sizes, self.starts = rest
        self.sizes: dict[str, ir.Value] = dict(zip(("rows", "columns", *SIZES), (rows, columns, *sizes), strict=True))
        self.kind = ir.VectorType.get([self.lanes], mlir_scalar(product.dtype))

    def define(self, last: int) -> None:
        """Emit the loops over the tiles; at most `last` vectors are computed of one that needs no more."""
        emit = IndexEmitter(IndexSpace(dict.fromkeys(self.sizes, (0, 1 << 40))), self.sizes)
        with loop("column", 0, self.sizes["columns"], self.blocking.tile_columns, emit) as here:
            emit.space.bound("column", 0, 1 << 40)
            if last < self.blocking.vectors:
                left_over = here(symbol("columns") - symbol("column"))
                is_wide = arith.cmpi(arith.CmpIPredicate.sgt, left_over, here(last * self.lanes))
                for has_all, region in branches(is_wide, here):
                    with region as inside:
                        self._tiles(self.blocking.vectors if has_all else last, inside)
            else:
                self._tiles(self.blocking.vectors, here.inside({}))

    def _tiles(self, vectors: int, around: IndexEmitter) -> None:
        with loop("row", 0, self.row_tiles, 1, around) as inside:
            self._tile(vectors, inside)

    def _nothing(self) -> ir.Value:
        return vector.BroadcastOp(self.kind, zero(self.product.dtype)).result

    def _tile(self, vectors: int, index: IndexEmitter) -> None:
        """Emit one register tile, `vectors` vectors wide, over the whole packed depth."""
        blocking, of_left, lanes = self.blocking, self.of_left, self.lanes
        places = [(row, part) for row in range(blocking.tile_rows) for part in range(vectors)]
        top = expr.mul(symbol("row"), blocking.tile_rows)
        views = [strided_view(self.result, self._place(top + row, part), (lanes,), (1,), index) for row, part in places]
        nothing = self._nothing()

        def step(accumulators: Sequence[ir.Value], beyond: Dim, here: IndexEmitter) -> list[ir.Value]:
            """Add the products of one step of the depth; its left elements are `beyond` elements after the row
            starts.
            """
            loaded: list[ir.Value] = []
            for part in range(vectors):
                at = self._on_the_right(symbol("column"), part * lanes, symbol("step"))
                view = strided_view(self.right, at, (lanes,), (1,), here)
                loaded.append(vector.LoadOp(self.kind, view, [here(0)]).result)
            after: list[ir.Value] = []
            for row in range(blocking.tile_rows):
                view = strided_view(self.left, expr.add(begins[row], beyond), (), (), here)
                repeated = vector.BroadcastOp(self.kind, memref.load(view, [])).result
                for part in range(vectors):
                    after.append(self.product.added(repeated, loaded[part], accumulators[row * vectors + part]))
            return after

        if self.ahead.result:
            for view in views:
                prefetch(view, NEAREST_CACHE, index, is_written=True)
        firsts, begins = self._rows_on_the_left(index)
        ahead = self._ahead(index) if self.ahead.right and not firsts else {}
        over_depth = scf.ForOp(index(0), self.depth, index(max(of_left.run, 1)), [nothing] * len(views))
        with ir.InsertionPoint(over_depth.body):
            if not firsts:
                here = index.inside({"step": over_depth.induction_variable})
                if ahead:
                    self._prefetch_ahead(vectors, here.inside(ahead))
                made = step(over_depth.inner_iter_args, 0, here)
            else:
                here = index.inside({"begin": over_depth.induction_variable})
                entry = entry_of(self.tables[1], symbol("begin"), here)
                if self.ahead.right:
                    self._prefetch_far(vectors, here)
                if self.ahead.left:
                    self._prefetch_next(arith.addi(firsts[0], entry), here)
                starts = {f"place{row}": arith.addi(first, entry) for row, first in enumerate(firsts)}
                made = _run(step, over_depth, of_left.run, here.inside(starts))
            scf.YieldOp(made)
        sums = list(over_depth.results)
        if not self.results.is_exact:
            self._store(sums, views, index)
            return
        rows, columns = symbol("row") * blocking.tile_rows + blocking.tile_rows, symbol("column") + vectors * lanes
        fits = (index(dim) for dim in (symbol("rows") - rows, symbol("columns") - columns))
        is_whole = arith.andi(*(arith.cmpi(arith.CmpIPredicate.sge, rest, index(0)) for rest in fits))
        for has_all, region in branches(is_whole, index):
            with region as inside:
                (self._store if has_all else self._store_inside)(sums, views, inside)

    def _place(self, row: Dim, part: int) -> Dim:
        """The offset of vector `part` of a row of the block, in the columns of the current tile."""
        stride, run = symbol("stride"), self.results.run
        if not run:
            return symbol("result_first") + expr.mul(row, stride) + symbol("column") + part * self.lanes
        number, place = self._in_runs(symbol("column"), part * self.lanes, run)
        return symbol("result_first") + expr.mul(number, stride) + expr.mul(row, run) + place

    def _rows_on_the_left(self, index: IndexEmitter) -> tuple[Sequence[ir.Value], Sequence[Dim]]:
        """The table entries of a tile or of each of its rows, and where the rows begin: in place, from `place{n}`
        on.
        """
        height, left = self.blocking.tile_rows, self.of_left
        if not self.tables:
            assert left.row is not None, "packed rows are equally far apart"
            first = symbol("left_first") + symbol("row") * symbol("left_panel") + symbol("step") * left.step
            return (), [expr.add(first, row * left.row) for row in range(height)]
        known = range(height) if left.row is None else range(1)
        entries = (entry_of(self.tables[0], symbol("row") * height + row, index) for row in known)
        firsts = [arith.addi(entry, self.sizes["left_first"]) for entry in entries]
        if left.row is None:
            return firsts, [symbol(f"place{row}") for row in known]
        return firsts, [symbol("place0") + row * left.row for row in range(height)]

    def _store(self, sums: Sequence[ir.Value], views: Sequence[ir.Value], index: IndexEmitter) -> None:
        """Store a whole tile if it `starts`, else add it.

        The sums start from zero and are added once, so that the error of a long sum grows with its blocks, not its
        steps.
        """
        for is_first, region in branches(self.starts, index):
            with region as here:
                none = here(0)
                for value, view in zip(sums, views, strict=True):
                    total = value if is_first else self._added(vector.LoadOp(value.type, view, [none]).result, value)
                    vector.StoreOp(total, view, [none])

    def _store_inside(self, sums: Sequence[ir.Value], views: Sequence[ir.Value], index: IndexEmitter) -> None:
        """Store or add the part of a tile inside the block."""
        lanes, height = self.lanes, self.blocking.tile_rows
        flags = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
        masks: list[ir.Value] = []
        for part in range(len(sums) // height):
            masks.append(vector.create_mask(flags, [index(symbol("columns") - symbol("column") - part * lanes)]))
        nothing = self._nothing()
        # Adding zero changes no sum that starts from zero: it is -0 only if a negative result underflowed.
        is_added = vector.BroadcastOp(flags, arith.xori(self.starts, arith.constant(self.starts.type, 1))).result
        added = [arith.andi(mask, is_added) for mask in masks]
        for row in range(height):
            place = index(symbol("row") * height + row)
            with where(arith.cmpi(arith.CmpIPredicate.slt, place, index(symbol("rows"))), index) as here:
                none = here(0)
                for part, mask in enumerate(masks):
                    value, view = (each[row * len(masks) + part] for each in (sums, views))
                    before = vector.MaskedLoadOp(self.kind, view, [none], added[part], nothing).result
                    vector.MaskedStoreOp(view, [none], mask, self._added(before, value))

    def _added(self, before: ir.Value, value: ir.Value) -> ir.Value:
        return arith.addf(before, value) if self.product.dtype.is_float else arith.addi(before, value)

    def _prefetch_next(self, place: ir.Value, index: IndexEmitter) -> None:
        """Prefetch a run of the rows of the next tile, which follow those at `place`: the runs of a tile are far apart,
        so that the processor foresees none.
        """
        size, line = self.blocking.tile_rows * self.of_left.run, CACHE_LINE // self.product.dtype.itemsize
        here = index.inside({"place": place})
        for offset in range(size, 2 * size, line):
            view = strided_view(self.left, symbol("place") + offset, (self.lanes,), (1,), here)
            prefetch(view, NEAREST_CACHE, here)

    def _ahead(self, index: IndexEmitter) -> dict[str, ir.Value]:
        """The next columns, the first step of the share of the tile `row`, and how many elements of each panel to
        prefetch at a step: half a step, so that two tiles of rows share a panel.
        """
        after, first = self._share(index(0), index)
        few = arith.cmpi(arith.CmpIPredicate.ule, self.row_tiles, index(FEW_TILES))
        for name in ("next", "next_step", "rate"):
            index.space.bound(name, 0, 1 << 40)
        return {"next": after, "next_step": first, "rate": arith.select(few, index(self.of_right // 2), index(0))}

    def _prefetch_ahead(self, vectors: int, index: IndexEmitter) -> None:
        for column in range(0, vectors * self.lanes, self.of_right):
            at = self._on_the_right(symbol("next"), column, symbol("next_step")) + symbol("step") * symbol("rate")
            prefetch(strided_view(self.right, at, (self.lanes,), (1,), index), SECOND_CACHE, index)

    def _share(self, begin: ir.Value, index: IndexEmitter) -> tuple[ir.Value, ir.Value]:
        """The columns to prefetch, and the first of their steps, for the tile `row` at step `begin`."""
        after = index(symbol("column") + self.blocking.tile_columns)
        is_last = arith.cmpi(arith.CmpIPredicate.sge, after, index(symbol("columns")))
        share = arith.divui(arith.addi(arith.muli(index(symbol("row")), self.depth), begin), self.row_tiles)
        first = arith.addi(share, arith.select(is_last, self.depth, index(0)))
        return arith.select(is_last, index(0), after), first

    def _prefetch_far(self, vectors: int, index: IndexEmitter) -> None:
        """Prefetch the share of the tile `row` of right-hand panels that come from memory, for a run of steps from
        `begin` on: those of the next columns or, after the last, the next `depth` steps of the first columns.
        """
        lanes = self.lanes
        after, first = self._share(index(symbol("begin")), index)
        few = arith.cmpi(arith.CmpIPredicate.ule, self.row_tiles, index(FEW_TILES))
        count = arith.select(few, arith.ceildivui(index(self.of_left.run), self.row_tiles), index(0))
        with loop("ahead", 0, count, 1, index) as here:
            for name in ("next", "next_step"):
                index.space.bound(name, 0, 1 << 40)
            step = arith.addi(first, here.names["ahead"])
            here = here.inside({"next_step": step, "next": after})
            for part in range(vectors):
                at = self._on_the_right(symbol("next"), part * lanes, symbol("next_step"))
                prefetch(strided_view(self.right, at, (lanes,), (1,), here), SECOND_CACHE, here)

    def _on_the_right(self, tile: Dim, column: int, step: Dim) -> Dim:
        """The offset of the vector at a `column` of the tile that begins at column `tile`, for a step of the depth."""
        number, place = self._in_runs(tile, column, panel := self.of_right)
        return expr.add(symbol("right_first"), expr.mul(number, symbol("right_panel")), expr.mul(step, panel), place)

    def _in_runs(self, tile: Dim, column: int, run: int) -> tuple[Dim, Dim]:
        """The run, and the place in it, of a `column` of the tile that begins at column `tile`."""
        if run > self.blocking.tile_columns:
            return expr.floordiv(tile, run), expr.add(expr.floormod(tile, run), column)
        return expr.add(expr.floordiv(tile, run), column // run), column % run


TURN = 2
"""Steps of a long run in a turn of their loop. With one, convolutions take 1 to 3 % longer; four are hardly better."""


def _run(
    step: Callable[[Sequence[ir.Value], Dim, IndexEmitter], list[ir.Value]],
    around: Any,
    count: int,
    index: IndexEmitter,
) -> Sequence[ir.Value]:
    """Emit `count` steps with contiguous elements on the left."""

    def turn(steps: int, made: Sequence[ir.Value], first: ir.Value, beyond: Dim, here: IndexEmitter) -> Any:
        for number in range(steps):
            at = arith.addi(first, index(number)) if number else first
            made = step(made, expr.add(beyond, number), here.inside({"step": at}))
        return made

    if count <= SHORT_RUN:
        return turn(count, around.inner_iter_args, around.induction_variable, 0, index)
    index.space.bound("inner", 0, count)
    at_once = gcd(count, TURN)
    loop = scf.ForOp(index(0), index(count), index(at_once), around.inner_iter_args)
    with ir.InsertionPoint(loop.body):
        first = arith.addi(around.induction_variable, loop.induction_variable)
        here = index.inside({"inner": loop.induction_variable})
        scf.YieldOp(turn(at_once, loop.inner_iter_args, first, symbol("inner"), here))
    return loop.results
