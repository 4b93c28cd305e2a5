"""The strategy for contractions: square tiles of both operands in shared memory, a square of results per thread.

A work-group computes a tile of the result. In each step along the depth it stores a tile of either operand to shared
memory, waits at a barrier, and multiplies, while the operands of the next step are loaded to registers. At the end the
results go through shared memory, some rows of each thread at a time, so that neighbouring threads compute the maps for
neighbouring columns and store them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from passes.loops.body import KernelBody
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop, extent_of
from passes.schedule.choice import Choice
from passes.schedule.record import PlacedAxis, kernel_item, on_threads, tiles_of
from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem, SharedArray

from .contraction_emission import ContractionEmission
from .cost import product_cost
from .frame import Frame
from .machine import Machine
from .tiles import SIDE, THREADS, Tiles, stride

NAME = "contraction"
PER_THREAD = (8, 4, 2, 1)
"""Results of a thread along rows and along columns, largest first; larger tiles load fewer factors per product."""
REGISTER_BYTES = 256
"""Bytes of all results of a thread: a quarter of its registers."""
DEPTH_BYTES = 64
"""Bytes of one row of a tile: the narrowest run of memory that uses whole sectors of the cache."""


Problem = tuple[KernelBody, Contraction]
"""A contraction kernel with adjacent loops merged, and its contraction."""


def candidates(problem: Problem, machine: Machine) -> Iterator[Choice]:
    """Tiles as large as the extents can fill, up to 128 by 128, and smaller ones for more work-groups."""
    body, parts = problem
    shares = [tuple(_per_thread(body, loops, most) for loops in (parts.rows, parts.columns)) for most in PER_THREAD]
    for rows, columns in dict.fromkeys(shares):
        if rows * columns * parts.dtype.itemsize <= REGISTER_BYTES:
            depth = DEPTH_BYTES // parts.dtype.itemsize
            yield _choice(problem, Tiles(SIDE * rows, SIDE * columns, depth, rows, columns), machine)


def _choice(problem: Problem, tiles: Tiles, machine: Machine) -> Choice:
    body, parts = problem
    row_tiles = expr.ceildiv(extent_of(parts.rows), tiles.rows)
    column_tiles = expr.ceildiv(extent_of(parts.columns), tiles.columns)
    groups = expr.mul(extent_of(parts.batch), row_tiles, column_tiles)
    axes = [
        PlacedAxis("batch", extent_of(parts.batch), "block"),
        PlacedAxis("row_tile", row_tiles, "block", tiles=(tiles.rows, tiles.thread_rows)),
        PlacedAxis("column_tile", column_tiles, "block", tiles=(tiles.columns, tiles.thread_columns)),
        PlacedAxis("thread_row", SIDE, "thread"),
        PlacedAxis("thread_column", SIDE, "thread"),
        PlacedAxis("depth", extent_of(parts.depth), "serial", is_reduction=True, tiles=(tiles.depth,)),
    ]
    dtype = parts.dtype
    operands = [tiles.depth * stride(width, dtype.itemsize) for width in (tiles.rows, tiles.columns)]
    results = SIDE * tiles.rows_at_once(dtype.itemsize) * tiles.columns
    shared = [SharedArray(dtype=dtype, elements=count) for count in (*operands, results)]
    item = kernel_item(body.function.name, axes, on_threads(groups, THREADS, machine.runtime), shared)
    return Choice(NAME, item, (), partial(product_cost, body, parts, tiles, machine))


def realise(problem: Problem, item: KernelItem, frame: Frame) -> None:
    """Emit the tile of one work-group."""
    rows, thread_rows = tiles_of(item, "row_tile")
    columns, thread_columns = tiles_of(item, "column_tile")
    (depth,) = tiles_of(item, "depth")
    tiles = Tiles(rows, columns, depth, thread_rows, thread_columns)
    ContractionEmission(*problem, tiles, frame).emit()


def _per_thread(body: KernelBody, loops: tuple[Loop, ...], most: int) -> int:
    """The most results of a thread along `loops`, up to `most`, for which their extent fills a tile."""
    extent: Dim = body.space.largest(extent_of(loops))
    count = most
    while count > 1 and SIDE * count // 2 >= extent:
        count //= 2
    return count
