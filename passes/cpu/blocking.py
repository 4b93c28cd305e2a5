"""How a contraction is cut into blocks: registers, then caches, then work-groups.

The structure is that of BLIS (Van Zee and van de Geijn, ACM TOMS 41(3), 2015): a register tile of `tile_rows` by
`tile_columns` accumulates over `depth` packed elements; packed blocks of the two operands and the block of the result
stay in the L2 cache together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import ceil

from passes.loops.contraction import Contraction
from passes.loops.domain import extent_of
from passes.schedule.record import tiles_of
from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem, Vectorize

from .machine import VectorUnit

DEPTH_BYTES = 1024
"""Of a packed row or column: a panel of the right operand then fills half to all of a 32 KiB L1 cache."""
BLOCK_ROWS = 224
MIN_GROUPS = 4
MIN_TILES = 4
"""Of rows in a block: packing the right operand again for fewer costs more than another thread saves."""
COLUMN_BYTES = 1024
"""Of a row of the result block."""
RESULT_BYTES = 512 * 1024
"""Of the result block, where the left operand is packed before: only the right operand is beside it in the cache."""
VECTORS_PER_TILE = 2
NO_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True)
class Blocking:
    """Sizes in elements; every block size is a multiple of its tile size."""

    lanes: int
    tile_rows: int
    tile_columns: int
    block_rows: int
    block_columns: int
    block_depth: int


def blockings(contraction: Contraction, unit: VectorUnit) -> Iterator[Blocking]:
    """Blocks of the tallest tiles that the registers hold, and of those that just as many take to hold the rows."""
    yield choose_blocking(contraction, unit)
    rows, most = extent_of(contraction.rows), tallest_tile(unit)
    if isinstance(rows, int) and contraction.left.panels is None:
        fitted = ceil(rows / ceil(rows / most))
        if fitted < min(rows, most):
            yield choose_blocking(contraction, unit, fitted)


def whole_tiles(contraction: Contraction, unit: VectorUnit) -> Iterator[Blocking]:
    """Blocks of the tallest tiles of which a row of the innermost loop is made up, if those are at least half as
    tall as registers allow.
    """
    inner, most = contraction.rows[-1].extent, tallest_tile(unit)
    if isinstance(inner, int) and contraction.left.panels is None:
        heights = (height for height in range(most, most // 2 - 1, -1) if inner % height == 0)
        yield from (choose_blocking(contraction, unit, height) for height in islice(heights, 1))


def tallest_tile(unit: VectorUnit) -> int:
    """Rows of accumulators in the registers, but for the vectors of the right operand, a broadcast, and one to spare"""
    return (unit.registers - VECTORS_PER_TILE - 2) // VECTORS_PER_TILE


def choose_blocking(contraction: Contraction, unit: VectorUnit, tile_rows: int | None = None) -> Blocking:
    """The blocks for a contraction, no larger than its extents ask for, of tiles of so many rows, or the tallest."""
    dtype = contraction.dtype
    lanes = unit.lanes(dtype)
    tile_rows = tile_rows or tallest_tile(unit)
    tile_columns = lanes * VECTORS_PER_TILE
    rows, columns, batch = (extent_of(loops) for loops in (contraction.rows, contraction.columns, contraction.batch))
    block_columns, most_rows = COLUMN_BYTES // dtype.itemsize, BLOCK_ROWS
    if contraction.left.panels is not None:
        tile_rows = contraction.left.panels.tile
        block_columns = _narrowed(columns, batch, max(tile_columns, contraction.run), block_columns)
        most_rows = RESULT_BYTES // dtype.itemsize // block_columns
    elif isinstance(rows, int) and rows < tile_rows:
        tile_rows = rows
    most_rows = min(most_rows, _row_limit(rows, columns, batch, tile_rows, block_columns))
    return Blocking(
        lanes=lanes,
        tile_rows=tile_rows,
        tile_columns=tile_columns,
        block_rows=balanced(rows, tile_rows, most_rows),
        block_columns=block_columns,
        block_depth=DEPTH_BYTES // dtype.itemsize,
    )


def _narrowed(columns: Dim, batch: Dim, tile: int, most: int) -> int:
    """Columns of a block where that costs nothing on the left: so few that threads have a work-group each."""
    if not isinstance(columns, int) or not isinstance(batch, int):
        return most
    share = ceil(columns * max(batch, 1) / MIN_GROUPS / tile) * tile
    return min(most, max(share, tile))


def _row_limit(rows: Dim, columns: Dim, batch: Dim, tile_rows: int, block_columns: int) -> int:
    """Rows of a block: fewer where columns and batch alone would leave threads without a work-group."""
    others = expr.mul(batch, expr.ceildiv(columns, block_columns))
    if not isinstance(rows, int) or not isinstance(others, int) or others >= MIN_GROUPS:
        return NO_LIMIT
    return max(ceil(rows * max(others, 1) / MIN_GROUPS), MIN_TILES * tile_rows)


def balanced(extent: Dim, tile: int, limit: int) -> int:
    """The least multiple of `tile` that holds the extent, or the greatest one within the limit."""
    most = max(tile, limit // tile * tile)
    if isinstance(extent, int):
        # Blocks of nearly equal size: a last block of a few rows would waste its packing.
        count = ceil(extent / most)
        return ceil(extent / count / tile) * tile
    return most


def group_counts(contraction: Contraction, blocking: Blocking) -> tuple[Dim, Dim, Dim]:
    """Work-groups along batch, rows and columns."""
    return (
        extent_of(contraction.batch),
        expr.ceildiv(extent_of(contraction.rows), blocking.block_rows),
        expr.ceildiv(extent_of(contraction.columns), blocking.block_columns),
    )


def tiles_of_blocking(contraction: Contraction, blocking: Blocking) -> dict[str, tuple[Dim, ...]]:
    """The tiles of the last loop of rows, columns and depth, as a schedule records them."""
    return {
        contraction.rows[-1].name: (blocking.block_rows, blocking.tile_rows),
        contraction.columns[-1].name: (blocking.block_columns, blocking.tile_columns),
        contraction.depth[-1].name: (blocking.block_depth,),
    }


def recorded_blocking(contraction: Contraction, item: KernelItem) -> Blocking:
    """The blocking of which a schedule has the tiles."""
    block_rows, tile_rows = tiles_of(item, contraction.rows[-1].name)
    block_columns, tile_columns = tiles_of(item, contraction.columns[-1].name)
    (block_depth,) = tiles_of(item, contraction.depth[-1].name)
    lanes = next(hint.width for hint in item.hints if isinstance(hint, Vectorize))
    return Blocking(lanes, tile_rows, tile_columns, block_rows, block_columns, block_depth)
