"""A contraction on one block of its result: pack operands where needed, and multiply in register tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from dialect.mlir import arith, func, ir, vector
from passes.emit.accumulation import Product
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import strided_view
from passes.emit.regions import branches, loop
from passes.loops.domain import extent_of
from passes.loops.index_space import IndexSpace
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .blocking import BYTE_TILE, BYTE_TILE_STEPS, Blocking
from .byte_tiles import ByteTiles, TileProduct
from .factors import Factors, run_in_memory
from .few_rows import FEW_ROWS, multiply_few_rows
from .frame import Frame
from .micro_kernel import LeftSteps, MicroKernel, Prefetches, Results, micro_kernel
from .narrow_products import product_of
from .offset_table import fill_tables
from .pack_function import Panels, pack
from .packing import SHORT_RUN, InPlace, InRows, Packed, Source
from .shared_functions import module_of

SHORT_TILES: Final = (4, 3, 2)
SHORT_COST: Final = 1
"""Extra cost of a short tile, in rows: it loads the right operand more often."""
DEEP: Final = 128
"""Least depth, in steps, at which a tile prefetches its result; a shorter one finds it in a cache."""
FAR_BYTES: Final = 1 << 18
"""Bytes of right-hand panels that other kernels drive from an L2 cache: they come from beyond it at each call."""
LONG_RUN: Final = 16
"""Least steps of the left operand between two prefetches of panels: enough to hide the cost of the prefetches."""


def prefetches(factors: Factors) -> Prefetches:
    """Whether the tiles of a product prefetch their result, the panels on the right, and the next rows on the left.

    A shallow tile finds its result in a cache after the tiles before it. The panels on the right come from memory if
    they are large, and are prefetched unless the left operand has runs too short to hide the cost. Rows of short runs
    in place are prefetched if they lie side by side: few cache lines then hold a run of a tile.
    """
    parts, left, right = factors.parts, factors.left, factors.right
    depth, columns = extent_of(parts.depth), extent_of(parts.columns)
    is_deep = not isinstance(depth, int) or depth >= DEEP
    is_far = isinstance(depth, int) and isinstance(columns, int) and depth * columns * parts.dtype.itemsize >= FAR_BYTES
    in_runs = left.run >= LONG_RUN if isinstance(left, InPlace) else factors.steps == 1
    side_by_side = isinstance(left, InPlace) and left.run == SHORT_RUN == left.source.address.outer[-1]
    return Prefetches(is_deep, is_far and in_runs and isinstance(right, Packed), side_by_side)


class BlockProduct:
    """Emits products of blocks for a kernel with operands at `bases`; `scratch` yields the `product_scratch` buffers.

    The index names `first_row`, `first_column`, `rows` and `columns` describe the block, and `space` has their bounds.
    The memory of the block has room for whole tiles, unless it `is_exact`: then other blocks follow it directly.
    """

    def __init__(
        self,
        factors: Factors,
        blocking: Blocking,
        bases: Mapping[int, ir.Value],
        scratch: Iterator[ir.Value],
        space: IndexSpace,
        frame: Frame,
        *,
        is_exact: bool = False,
    ) -> None:
        self.factors, self.blocking, self.bases, self.space = factors, blocking, bases, space
        self.is_exact = is_exact
        self.run = run_in_memory(factors.parts, blocking.lanes)
        left, right, dtype = factors.left, factors.right, factors.parts.dtype
        self.left, self.right = (
            next(scratch) if isinstance(source, Source) else bases[source.operand] for source in (left, right)
        )
        self.left_tables, self.right_tables = (
            [next(scratch) for _ in range(len(source.forms) + source.inner_tables)] for source in (left, right)
        )
        self.module, self.traits, self.vectors = module_of(frame.entry), frame.machine.traits, frame.machine.vectors
        self.right_memory = bases[right.operand]
        product = Product(dtype, factors.parts.rounding, self.traits)
        emission = ByteTiles if blocking.has_byte_tiles else MicroKernel
        if blocking.has_byte_tiles:
            of_bytes = [each.load.dtype is DType.INT8 for each in (factors.parts.left, factors.parts.right)]
            product = TileProduct(dtype, None, self.traits, self.module, *of_bytes)
        elif factors.steps > 1:
            product = product_of(dtype, factors.parts.left.load.dtype, factors.steps, self.traits, self.module)
        self.of = product
        columns = extent_of(factors.parts.columns)
        rest = columns % blocking.tile_columns if isinstance(columns, int) else 1
        last = -(-rest // blocking.lanes) or blocking.vectors
        steps = LeftSteps(1, left.stride if isinstance(left, InRows) else self._packed_depth)
        if isinstance(left, Packed):
            steps = LeftSteps(blocking.tile_rows, 1)
        elif isinstance(left, InPlace):
            steps = LeftSteps(1, left.stride, left.run)
        tile = right.tile if isinstance(right, Packed) else blocking.tile_columns
        ahead = prefetches(factors)

        def kernel(rows: int) -> str:
            tiled = replace(blocking, tile_rows=rows)
            results = Results(self.run, is_exact)
            return micro_kernel(
                self.module, product, tiled, steps, tile, last=last, results=results, ahead=ahead, emission=emission
            )

        self.kernels = {rows: kernel(rows) for rows in self._heights()}

    def _heights(self) -> Sequence[int]:
        """Rows of tiles: the recorded height, and a shorter one for blocks that would waste most of a tile."""
        if self.factors.streams:
            return ()
        if self.blocking.has_byte_tiles:
            return (BYTE_TILE,)
        recorded, rows = self.blocking.tile_rows, extent_of(self.factors.parts.rows)
        is_fixed = isinstance(rows, int) or not isinstance(self.factors.left, Source)
        whole = (rows for rows in SHORT_TILES if rows < recorded and self.blocking.block_rows % rows == 0)
        return (recorded,) if is_fixed else (recorded, *islice(whole, 1))

    @property
    def _packed_depth(self) -> int:
        """Elements of a packed row or column."""
        return self.blocking.block_depth // self.factors.steps

    @property
    def padded_rows(self) -> Dim:
        """The rows of the block, rounded up to whole tiles."""
        tile = self.blocking.tile_rows
        return expr.mul(expr.ceildiv(symbol("rows"), tile), tile)

    @property
    def _has_ways(self) -> bool:
        """Whether the number of rows to pack depends on the rows of the block."""
        return self.factors.streams is None or len(self.kernels) > 1

    @property
    def _steps_at_once(self) -> int:
        """Steps of the depth whose products are added together."""
        return BYTE_TILE_STEPS if self.blocking.has_byte_tiles else self.factors.steps

    @property
    def _padded_steps(self) -> Dim:
        """The steps of a block of the depth, rounded up to whole elements."""
        return expr.mul(expr.ceildiv(symbol("steps"), self.factors.steps), self.factors.steps)

    @property
    def needs_clear(self) -> bool:
        """Whether the depth may be empty, so that the result must be zeroed first."""
        return not self.space.is_positive(extent_of(self.factors.parts.depth))

    def clear(self, result: ir.Value, elements: Dim, index: IndexEmitter) -> None:
        """Zero `elements` elements, a multiple of a vector, if the product `needs_clear`."""
        if not self.needs_clear:
            return
        lanes, kind = self.blocking.lanes, ir.MemRefType(result.type).element_type
        vectors = ir.VectorType.get([lanes], kind)
        zero = vector.BroadcastOp(vectors, arith.constant(kind, 0.0 if self.factors.parts.dtype.is_float else 0))
        with loop("place", 0, elements, lanes, index) as here:
            target = strided_view(result, symbol("place"), (lanes,), (1,), here)
            vector.StoreOp(zero.result, target, [here(0)])

    def add(self, result: ir.Value, first: Dim, stride: Dim, index: IndexEmitter) -> None:
        """Add the product to the block with element 0 at `first`, and rows, or runs of columns, `stride` apart."""
        blocking, left, right = self.blocking, self.factors.left, self.factors.right
        if isinstance(right, Source):
            self._fill_inner(right, self.right_tables, symbol("first_column"), symbol("columns"), index)
        of_left = left.source if isinstance(left, InPlace) else left
        if isinstance(of_left, Source) and not self._has_ways:
            self._fill_outer(of_left, self.left_tables, symbol("first_row"), self.padded_rows, index)
        depth = extent_of(self.factors.parts.depth)
        with loop("first_step", 0, depth, blocking.block_depth, index) as here:
            index.space.add("first_step", depth)
            index.space.bound("steps", 1, blocking.block_depth)
            steps = expr.minimum(blocking.block_depth, expr.sub(depth, symbol("first_step")))
            here = here.inside({"steps": here(steps)})
            at, count = symbol("first_step"), symbol("steps")
            if isinstance(of_left, Source):
                self._fill_inner(of_left, self.left_tables, at, count, here)
            if isinstance(right, Source):
                self._fill_outer(right, self.right_tables, at, self._padded_steps, here)
            if self.factors.streams is not None:
                product = self._stream if self.factors.streams else self._multiply
                product(result, first, stride, here)
            else:
                few = arith.cmpi(arith.CmpIPredicate.sle, here(symbol("rows")), here(FEW_ROWS))
                for are_few, region in branches(few, here):
                    with region as inside:
                        (self._stream if are_few else self._multiply)(result, first, stride, inside)

    def _stream(self, result: ir.Value, first: Dim, stride: Dim, index: IndexEmitter) -> None:
        """Multiply a block of the depth without packing the right operand, for a few rows."""
        left = self.factors.left
        assert isinstance(left, Source), "few rows are packed on the left"
        self._pack_left(left, symbol("rows"), index)
        multiply_few_rows(
            self.module,
            self.of,
            self.blocking.lanes,
            (self.blocking.block_depth, self.blocking.block_columns),
            # The pack buffer of the right operand is free here, and large enough for the sums.
            (self.left, self.right_memory, self.right, result),
            self.right_tables[0],
            (symbol("rows"), symbol("columns"), symbol("steps"), symbol("first_column"), first, stride),
            self.starts(index),
            index,
            is_exact=self.is_exact,
        )

    def _multiply(self, result: ir.Value, first: Dim, stride: Dim, here: IndexEmitter) -> None:
        """Multiply a block of the depth in register tiles, after packing the operands for them."""
        right = self.factors.right
        if isinstance(right, Source):
            self._pack_right(right, here)
        tall, *short = self.kernels
        if not short:
            self._tiles(tall, result, first, stride, here)
            return
        (less,) = short
        costs = ((less, less + SHORT_COST), (tall, tall))
        computed = (expr.mul(expr.ceildiv(symbol("rows"), rows), cost) for rows, cost in costs)
        wastes = arith.cmpi(arith.CmpIPredicate.slt, *(here(dim) for dim in computed))
        for is_short, region in branches(wastes, here):
            with region as inside:
                self._tiles(less if is_short else tall, result, first, stride, inside)

    def _tiles(self, rows: int, result: ir.Value, first: Dim, stride: Dim, here: IndexEmitter) -> None:
        """Multiply the block in register tiles of `rows` rows."""
        left, right, tiles = self.factors.left, self.factors.right, expr.ceildiv(symbol("rows"), rows)
        if isinstance(left, Source):
            self._pack_left(left, expr.mul(tiles, rows), here)
        panels = (
            *self._panels(left, "first_row", rows),
            *self._panels(right, "first_column", self.blocking.tile_columns),
        )
        block = (symbol("rows"), symbol("columns"))
        depth = expr.ceildiv(symbol("steps"), self._steps_at_once)
        sizes = [here(dim) for dim in (tiles, *block, depth, *panels, first, stride)]
        tables = self.left_tables if isinstance(left, InPlace) else []
        func.CallOp([], self.kernels[rows], [self.left, self.right, result, *tables, *sizes, self.starts(here)])

    def starts(self, index: IndexEmitter) -> ir.Value:
        """Whether a block of the depth is stored instead of added: the first one, unless the depth may be empty."""
        if self.needs_clear:
            return arith.constant(ir.IntegerType.get_signless(1), 0)
        return arith.cmpi(arith.CmpIPredicate.eq, index(symbol("first_step")), index(0))

    def _panels(self, source: Source | Packed | InRows | InPlace, start: str, tile: int) -> tuple[Dim, Dim]:
        """The offset of the block's first panel in its memory, and the elements from a panel to the next."""
        if isinstance(source, InPlace):
            return source.source.inner_address(symbol("first_step"), self.space), 0
        if isinstance(source, Source):
            return 0, tile * self._packed_depth
        if isinstance(source, InRows):
            return expr.add(source.first, symbol("first_step")), tile * source.stride
        # A block begins at the start of a panel.
        at = expr.mul(symbol(start), source.size // source.tile)
        return expr.add(source.first, at, expr.mul(symbol("first_step"), source.tile)), source.size

    def _fill_outer(
        self, source: Source, tables: Sequence[ir.Value], start: Dim, count: Dim, index: IndexEmitter
    ) -> None:
        forms = [(form.base, form.outer) for form in source.forms]
        fill_tables(self.module, tables[: len(forms)], forms, source.outer, start, count, index)

    def _fill_inner(
        self, source: Source, tables: Sequence[ir.Value], start: Dim, count: Dim, index: IndexEmitter
    ) -> None:
        address, *conditions = source.forms
        from_start = expr.neg(source.inner_address(start, index.space))
        forms = [(from_start, address.inner), *((0, form.inner) for form in conditions)]
        fill_tables(self.module, tables[len(forms) :], forms, source.inner, start, count, index)

    def _pack_right(self, source: Source, index: IndexEmitter) -> None:
        """Pack as `[column tile][step][tile_columns]`. A step that pads the last element repeats the last step, and
        later steps of a tile of bytes are not set: on the left both are zero.
        """
        tile = self.blocking.tile_columns
        padded = expr.mul(expr.ceildiv(symbol("columns"), tile), tile)
        counts = (self._padded_steps, symbol("columns"), padded)
        layout = (tile, tile, self._packed_depth * tile)
        self._pack(source, self.right, self.right_tables, counts, "first_column", layout, index)

    def _pack_left(self, source: Source, rows: Dim, index: IndexEmitter) -> None:
        """Pack as `[row][block_depth]`. Rows that pad the last tile repeat the last row; their products are dropped."""
        if self._has_ways:
            self._fill_outer(source, self.left_tables, symbol("first_row"), rows, index)
        counts = (rows, symbol("steps"), symbol("steps"))
        layout = (self._packed_depth, self.blocking.block_depth, 0)
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
        joined = "inner" if packed is self.left else "outer"
        panels = Panels(
            self.factors.parts.dtype,
            layout,
            self.blocking.lanes,
            self.traits,
            joined,
            self.factors.steps,
            self.vectors.masked,
        )
        start = source.inner_address(symbol(first), index.space)
        pack(self.module, source, memory, packed, tables, counts, start, panels, index)
