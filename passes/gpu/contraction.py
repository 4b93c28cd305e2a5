"""The strategy for contractions: square tiles of both operands in shared memory, a square of results per thread.

A work-group computes a tile of the result. It walks the depth in steps, and at each loads a tile of either operand,
waits, and multiplies. At the end the tile goes through shared memory, so that whatever the kernel makes of it is
computed and stored by neighbouring threads for neighbouring columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from passes.loops.body import KernelBody
from passes.loops.contraction import Contraction, contraction_of
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
from .tiles import SIDE, Tiles

NAME = "contraction"
ROWS_PER_THREAD = 4
DEPTH_BYTES = 64
"""Of one row of a tile: the narrowest run of memory that uses whole sectors of the cache."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A contraction kernel after its loops have been merged."""

    body: KernelBody
    parts: Contraction


def find(body: KernelBody) -> Problem | None:
    """A contraction first, then only maps over its parallel loops."""
    found = contraction_of(body)
    return Problem(*found) if found is not None else None


def candidates(problem: Problem, machine: Machine) -> Iterator[Choice]:
    """Tiles as large as the extents can fill, up to 64 by 64, or of half that."""
    rows, columns = (_per_thread(problem, loops) for loops in (problem.parts.rows, problem.parts.columns))
    yield _choice(problem, _tiles(problem, rows, columns), machine)
    if rows > 1 and columns > 1:
        yield _choice(problem, _tiles(problem, rows // 2, columns // 2), machine)


def _choice(problem: Problem, tiles: Tiles, machine: Machine) -> Choice:
    parts = problem.parts
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
    shared = [
        SharedArray(dtype=problem.parts.dtype, elements=tiles.depth * tiles.rows),
        SharedArray(dtype=problem.parts.dtype, elements=tiles.depth * tiles.columns),
        SharedArray(dtype=problem.parts.dtype, elements=tiles.rows * tiles.columns),
    ]
    item = kernel_item(problem.body.function.name, axes, on_threads(groups, SIDE * SIDE, machine.runtime), shared)
    return Choice(NAME, item, (), partial(product_cost, problem.body, parts, tiles, machine))


def realise(problem: Problem, item: KernelItem, frame: Frame) -> None:
    """Emit the tile of one work-group."""
    rows, thread_rows = tiles_of(item, "row_tile")
    columns, thread_columns = tiles_of(item, "column_tile")
    (depth,) = tiles_of(item, "depth")
    tiles = Tiles(rows, columns, depth, thread_rows, thread_columns)
    ContractionEmission(problem.body, problem.parts, tiles, frame).emit()


def _tiles(problem: Problem, thread_rows: int, thread_columns: int) -> Tiles:
    depth = DEPTH_BYTES // problem.parts.dtype.itemsize
    return Tiles(SIDE * thread_rows, SIDE * thread_columns, depth, thread_rows, thread_columns)


def _per_thread(problem: Problem, loops: tuple[Loop, ...]) -> int:
    """The most results of a thread along `loops` for which their extent fills a tile."""
    extent: Dim = problem.body.space.largest(extent_of(loops))
    count = ROWS_PER_THREAD
    while count > 1 and SIDE * count // 2 >= extent:
        count //= 2
    return count
