"""Cut a contraction into blocks for registers, caches and work-groups.

The structure is that of BLIS (Van Zee and van de Geijn, ACM TOMS 41(3), 2015): a register tile of `tile_rows` by
`tile_columns` accumulates over `depth` packed elements; packed blocks of the two operands and the block of the result
fit the L2 cache together.
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

from .machine import QUAD, VectorUnit
from .packing import MAX_RUN

DEPTH_BYTES = 1024
"""Bytes of a packed row or column: a panel of the right operand then fills half to all of a 32 KiB L1 cache."""
BLOCK_ROWS, COLUMN_BYTES = 224, 1024
"""Rows of the result block, and bytes of one row: it stays in the cache for the maps behind the product."""
STORED_ROWS, STORED_COLUMN_BYTES = 350, 2048
"""The same for a block that is stored directly to the result: the packed operands have the cache to themselves."""
THREADS = (1, 2, 4)
"""Numbers of threads for which a contraction is divided."""
MORE = 4
"""Numbers of blocks of rows, and of columns, to choose from."""
NEAR, READ, PACK = 0.1, 0.3, 1.45
"""Cycles to read an element of an operand again for another block: in place on the left, from panels, and to pack it
again.
"""
RESULT_BYTES = 512 * 1024
"""Bytes of the result block if the left operand is packed in advance, or of bytes: it shares the cache with the right
operand only."""
PANEL_BYTES = 32 * 1024
"""Bytes of a panel of the right operand that stays in an L1 cache."""
VECTORS_PER_TILE = 2
BYTE_TILE = 16
"""Rows of a register that holds a tile of bytes, and its columns of 32-bit sums; tiles in vectors have fewer rows."""
BYTE_TILE_STEPS = 64
"""Steps of the depth in a row of such a register."""
BYTE_TILE_CYCLES = 16
"""Cycles of a product of two such registers (Sapphire Rapids and later)."""
BYTE_TILE_GAIN = 32
"""Products in such registers in the time of one in vectors."""
WIDE_TILE, WIDE_REGISTERS = 4, 32
"""Vectors of a wide tile, and the registers that it needs. It loads less per product, but its fewer rows divide fewer
inner loops."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """Block and tile sizes in elements; every block size is a multiple of its tile size."""

    lanes: int
    tile_rows: int
    tile_columns: int
    block_rows: int
    block_columns: int
    block_depth: int

    @property
    def vectors(self) -> int:
        """Vectors of a row of a tile."""
        return self.tile_columns // self.lanes

    @property
    def has_byte_tiles(self) -> bool:
        """Whether registers hold tiles of bytes."""
        return self.tile_rows == BYTE_TILE


def blockings(
    contraction: Contraction, unit: VectorUnit, *, again: tuple[float, float], is_stored: bool, steps: int = 1
) -> Iterator[Blocking]:
    """Blockings with the tallest tiles that registers hold, and with shorter tiles if just as many cover the rows.

    `again`, `is_stored` and `steps` are those of `choose_blocking`.
    """
    rows, panels = extent_of(contraction.rows), contraction.left.panels
    for vectors in _widths(contraction, unit):
        most = tallest_tile(unit, vectors)
        if panels is not None and panels.tile > most:
            continue
        yield choose_blocking(contraction, unit, vectors=vectors, again=again, is_stored=is_stored, steps=steps)
        if isinstance(rows, int) and panels is None:
            fitted = ceil(rows / ceil(rows / most))
            if fitted < min(rows, most):
                yield choose_blocking(
                    contraction, unit, fitted, vectors=vectors, again=again, is_stored=is_stored, steps=steps
                )


def in_byte_tiles(contraction: Contraction, unit: VectorUnit, again: tuple[float, float]) -> Blocking:
    """The blocking for a contraction of bytes in registers that hold tiles of them."""
    columns = extent_of(contraction.columns)
    narrow = VECTORS_PER_TILE * unit.lanes(contraction.dtype)
    vectors = WIDE_TILE if isinstance(columns, int) and columns > narrow else VECTORS_PER_TILE
    return choose_blocking(contraction, unit, BYTE_TILE, vectors=vectors, again=again, steps=QUAD)


def _widths(contraction: Contraction, unit: VectorUnit) -> Iterator[int]:
    """Tile widths in vectors. A wide tile at the end computes only the vectors it needs: the columns must be known."""
    rows, columns = extent_of(contraction.rows), extent_of(contraction.columns)
    narrow = VECTORS_PER_TILE * unit.lanes(contraction.dtype)
    is_tall = not isinstance(rows, int) or rows > tallest_tile(unit)
    if unit.registers >= WIDE_REGISTERS and is_tall and isinstance(columns, int) and columns > narrow:
        yield WIDE_TILE
    yield VECTORS_PER_TILE


def whole_tiles(
    contraction: Contraction, unit: VectorUnit, *, again: tuple[float, float], is_stored: bool, steps: int = 1
) -> Iterator[Blocking]:
    """Blockings with the tallest tile whose height divides the innermost row loop, at least half as tall as registers
    allow.
    """
    inner = contraction.rows[-1].extent
    if not isinstance(inner, int) or contraction.left.panels is not None:
        return
    for vectors in _widths(contraction, unit):
        most = tallest_tile(unit, vectors)
        heights = (height for height in range(most, most // 2 - 1, -1) if inner % height == 0)
        for height in islice(heights, 1):
            yield choose_blocking(
                contraction, unit, height, vectors=vectors, again=again, is_stored=is_stored, steps=steps
            )


def tallest_tile(unit: VectorUnit, vectors: int = VECTORS_PER_TILE) -> int:
    """Rows of accumulators that fit the registers, beside the right operand's vectors, a broadcast, and a spare one."""
    return (unit.registers - vectors - 2) // vectors


def choose_blocking(
    contraction: Contraction,
    unit: VectorUnit,
    tile_rows: int | None = None,
    *,
    vectors: int = VECTORS_PER_TILE,
    again: tuple[float, float] | None = (PACK, PACK),
    is_stored: bool = False,
    steps: int = 1,
) -> Blocking:
    """The blocking of a contraction, no larger than its extents, with tiles of `tile_rows` rows or the tallest.

    `again` are the cycles to read an element of the left and of the right operand again for another block; None if
    threads do not share the contraction by blocks, but the loops around it. `is_stored` means that blocks are stored
    directly to the result; else they stay in the cache for the maps. A packed element holds so many `steps` of the
    depth.
    """
    dtype = contraction.dtype
    lanes = unit.lanes(dtype)
    tile_rows = tile_rows or tallest_tile(unit, vectors)
    tile_columns = lanes * vectors
    rows, columns, batch = (extent_of(loops) for loops in (contraction.rows, contraction.columns, contraction.batch))
    most_rows, block_columns = BLOCK_ROWS, COLUMN_BYTES // dtype.itemsize
    panels = contraction.left.panels
    if panels is not None:
        tile_rows = panels.tile
    if panels is not None or tile_rows == BYTE_TILE:
        most_rows = RESULT_BYTES // dtype.itemsize // block_columns
    elif isinstance(rows, int):
        tile_rows = min(tile_rows, max(rows, 1))
    if again and isinstance(rows, int) and isinstance(columns, int) and isinstance(batch, int):
        if is_stored and panels is None:
            most_rows, block_columns = STORED_ROWS, STORED_COLUMN_BYTES // dtype.itemsize
        unit_columns = max(tile_columns, contraction.run, _run_on_the_right(contraction))
        most_rows, block_columns = _shared_out(
            (rows, columns, batch), (tile_rows, unit_columns), (most_rows, block_columns), lanes, again
        )
    return Blocking(
        lanes=lanes,
        tile_rows=tile_rows,
        tile_columns=tile_columns,
        block_rows=balanced(rows, tile_rows, most_rows),
        block_columns=block_columns,
        block_depth=steps * (min(DEPTH_BYTES, PANEL_BYTES // tile_columns) // dtype.itemsize),
    )


def _run_on_the_right(contraction: Contraction) -> int:
    """Columns of a run in which the right operand may be read: a block begins at the start of a run."""
    inner = contraction.columns[-1].extent if len(contraction.columns) > 1 else 1
    return inner if isinstance(inner, int) and 0 < inner <= MAX_RUN and inner & (inner - 1) == 0 else 1


def _shared_out(
    extents: tuple[int, int, int],
    tile: tuple[int, int],
    most: tuple[int, int],
    lanes: int,
    again: tuple[float, float],
) -> tuple[int, int]:
    """Rows and columns of a block, at most `most`: those with the least sum of the times on `THREADS` threads.

    `extents` are rows, columns and batch. Each block of columns reads all rows of the left operand again, and each
    block of rows all columns of the right one.
    """
    rows, columns, batch = (max(extent, 1) for extent in extents)
    down, across = (ceil(extent / limit) for extent, limit in zip((rows, columns), most, strict=True))

    def taken(block: tuple[int, int]) -> float:
        row_blocks, column_blocks = ceil(rows / block[0]), ceil(columns / block[1])
        blocks = batch * row_blocks * column_blocks
        cycles = rows * columns / (2 * lanes) + rows * column_blocks * again[0] + columns * row_blocks * again[1]
        largest = min(block[0] * block[1] / (batch * rows * columns), 1.0)
        return cycles * sum(max(ceil(blocks / threads) / blocks, largest) for threads in THREADS)

    return min(
        (
            (_in_tiles(rows, row_blocks, tile[0]), _in_tiles(columns, column_blocks, tile[1]))
            for row_blocks in range(down, down + MORE)
            for column_blocks in range(across, across + MORE)
        ),
        key=taken,
    )


def _in_tiles(extent: int, blocks: int, tile: int) -> int:
    """Elements of each of `blocks` blocks, rounded up to whole tiles."""
    return max(ceil(extent / blocks / tile), 1) * tile


def balanced(extent: Dim, tile: int, limit: int) -> int:
    """The size of the fewest equal blocks of whole tiles within the limit; if the extent is symbolic, the limit."""
    most = max(tile, limit // tile * tile)
    if isinstance(extent, int):
        # Blocks of nearly equal size: a last block of a few rows would waste its packing.
        count = ceil(extent / most)
        return ceil(extent / count / tile) * tile
    return most


def group_counts(contraction: Contraction, blocking: Blocking) -> tuple[Dim, Dim, Dim]:
    """The number of work-groups along batch, rows and columns."""
    return (
        extent_of(contraction.batch),
        expr.ceildiv(extent_of(contraction.rows), blocking.block_rows),
        expr.ceildiv(extent_of(contraction.columns), blocking.block_columns),
    )


def tiles_of_blocking(contraction: Contraction, blocking: Blocking) -> dict[str, tuple[Dim, ...]]:
    """The tiles of the last row, column and depth loops, as a schedule records them."""
    return {
        contraction.rows[-1].name: (blocking.block_rows, blocking.tile_rows),
        contraction.columns[-1].name: (blocking.block_columns, blocking.tile_columns),
        contraction.depth[-1].name: (blocking.block_depth,),
    }


def recorded_blocking(contraction: Contraction, item: KernelItem) -> Blocking:
    """The blocking that a schedule record describes."""
    block_rows, tile_rows = tiles_of(item, contraction.rows[-1].name)
    block_columns, tile_columns = tiles_of(item, contraction.columns[-1].name)
    (block_depth,) = tiles_of(item, contraction.depth[-1].name)
    lanes = next(hint.width for hint in item.hints if isinstance(hint, Vectorize))
    return Blocking(lanes, tile_rows, tile_columns, block_rows, block_columns, block_depth)
