"""Choose the rows of a kernel: which loops are spread over work-groups, and which each row runs through.

A row should be long enough to be worth its loop overhead, short enough to leave rows for every thread, and should end
with the loop that walks memory contiguously.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensorkiln import expr
from tensorkiln.expr import Dim, free_symbols

from ..loops.accesses import linear_access, loads
from ..loops.body import KernelBody, Stage, inner_loops
from ..loops.domain import Loop, extent_of, is_window
from ..loops.index_space import IndexSpace
from ..loops.substitution import over
from .choice import bounded

MIN_POINTS = 1024
CHUNK = 16384
"""Points per piece of a long loop that has no rows around it: 64 KiB of float32."""
COLUMN_CHUNK = 1024
"""Columns whose accumulators stay in the cache while a work-group walks down the rows."""
SHORT_REDUCTION = 64
GROUP_POINTS = 32768
"""Points of a work-group: few enough that every thread gets one, enough to amortise its start."""
SYMBOLIC_EXTENT = 256
TRANSPOSE_TILE = 32
"""Rows and columns of a tile of a transposition: two cache lines of float32."""
LEAST_ACROSS = 8
"""Least points along which a transposition reads contiguous elements: those of a block of channels. One that writes so
few is left to loops: weights are stored in such blocks once, and its code takes longer to compile.
"""


ROW = 0
WHOLE = -1

Rows = tuple[int, ...]
"""For each loop that all stages share: `ROW` for a loop over rows, `WHOLE` for a loop inside every row, or a piece size
for a loop that is cut: the pieces are rows, and each row runs through one piece."""


def rows_candidates(body: KernelBody, chunk: int = CHUNK) -> Iterator[Rows]:
    """Ways to split the loops that all stages share, the most promising first.

    A long loop of maps is cut into pieces of about `chunk` points.
    """
    count = len(body.rows)
    across = read_across(body)
    if across is not None:
        yield tuple(TRANSPOSE_TILE if number in (across, count - 1) else ROW for number in range(count))
        return
    reductions = [stage for stage in body.stages if stage.combine is not None]
    if not reductions:
        kept = [_rows_of_maps(body)]
    elif not body.rows or not all(inner_loops(body, stage) == stage.domain.reduction != () for stage in reductions):
        kept = [count]
    else:
        kept = [count - 1, count]
        if not all(_prefers_columns(body, stage) for stage in reductions):
            kept.reverse()
    are_windows = all(is_window(stage.domain.loops) for stage in reductions)
    for number in kept:
        yield _outermost(body, number, chunk if are_windows else COLUMN_CHUNK)


def _outermost(body: KernelBody, kept: int, limit: int) -> Rows:
    """The first `kept` loops as rows, with the next loop cut into pieces of about `limit` points."""
    count = len(body.rows)
    if kept == count:
        return (ROW,) * count
    return (*(ROW,) * kept, _cut(body, kept, limit), *(WHOLE,) * (count - kept - 1))


def _cut(body: KernelBody, number: int, limit: int) -> int:
    """The piece size for the shared loop `number`, so that a piece has about `limit` points, or `WHOLE`."""
    inside = extent_of(body.rows[number + 1 :])
    points = expr.mul(body.rows[number].extent, inside)
    if not isinstance(inside, int) or not 0 < inside <= limit or body.space.largest(points) <= 2 * limit:
        return WHOLE
    return limit // inside


def with_rows(body: KernelBody, rows: Rows) -> KernelBody:
    """`body` with its shared loops split as `rows` says."""
    loops: list[Loop] = []
    pieces: dict[str, Loop] = {}
    values: dict[str, Dim] = {}
    for loop, size in zip(body.rows, rows, strict=True):
        if size == ROW:
            loops.append(loop)
        elif size != WHOLE:
            block, pieces[loop.name], values[loop.name] = cut(body.space, loop, size)
            loops.append(block)
    if not pieces:
        return replace(body, rows=tuple(loops))
    stages: list[Stage] = []
    for stage in body.stages:
        rest = [pieces.get(own.name, own) for own in stage.domain.loops if own not in loops]
        stages.append(over(body, stage, (*loops, *rest), values))
    return replace(body, rows=tuple(loops), stages=tuple(stages))


def cut(space: IndexSpace, loop: Loop, size: int) -> tuple[Loop, Loop, Dim]:
    """Cut `loop` into pieces of `size` points: the loop over pieces, the loop in a piece, and the index in `loop`."""
    block = Loop(block_name(loop), expr.ceildiv(loop.extent, size), loop.is_reduction)
    start = expr.mul(space.add(block.name, block.extent), size)
    is_even = isinstance(loop.extent, int) and loop.extent % size == 0
    points = size if is_even else expr.minimum(size, expr.sub(loop.extent, start))
    piece = Loop(f"{loop.name}_piece", points, loop.is_reduction)
    return block, piece, expr.add(start, space.add(piece.name, piece.extent))


def block_name(loop: Loop) -> str:
    """The name of the loop over the pieces of `loop`."""
    return f"{loop.name}_block"


def read_across(body: KernelBody) -> int | None:
    """The shared loop along which a read is contiguous, if it is not the loop along which the only stage writes.

    Such a kernel touches a cache line for every element it reads; square tiles use the whole line.
    """
    if len(body.stages) != 1 or body.stages[0].combine is not None or len(body.rows) < 2:
        return None
    names = [loop.name for loop in body.rows]
    for load in loads(body.stages[0].elements, body.nodes):
        access = linear_access(load, body.nodes, names)
        if access is None or access.strides[-1] in (0, 1) or 1 not in access.strides:
            continue
        across = access.strides.index(1)
        largest = [body.space.largest(body.rows[number].extent) for number in (across, -1)]
        if largest[0] >= LEAST_ACROSS and largest[1] > TRANSPOSE_TILE:
            return across
    return None


def rows_per_group(body: KernelBody) -> int:
    """The number of rows of a work-group."""
    points = sum(_typical(body, inner_loops(body, stage)) for stage in body.stages)
    return max(1, GROUP_POINTS // max(points, 1))


def _rows_of_maps(body: KernelBody) -> int:
    """How many loops stay rows when all stages are maps; the inner loops moved inside make a row long enough."""
    kept = len(body.rows)
    points: Dim = max((extent_of(inner_loops(body, stage)) for stage in body.stages), key=body.space.largest)
    while kept > 0 and isinstance(points, int) and points < MIN_POINTS:
        kept -= 1
        points = expr.mul(points, body.rows[kept].extent)
    return kept


def _prefers_columns(body: KernelBody, stage: Stage) -> bool:
    """Whether the last parallel loop should run innermost: more reads are contiguous along it, or sums are short."""
    names = [loop.name for loop in stage.domain.loops]
    column, last = names.index(body.rows[-1].name), names.index(stage.domain.reduction[-1].name)
    strided_columns = strided_reductions = 0
    for load in loads(stage.elements, body.nodes):
        access = linear_access(load, body.nodes, names)
        if access is not None:
            strided_columns += access.strides[column] not in (0, 1)
            strided_reductions += access.strides[last] not in (0, 1)
    points = extent_of(stage.domain.reduction)
    is_short = isinstance(points, int) and points <= SHORT_REDUCTION
    is_wide = body.space.largest(body.rows[-1].extent) >= 8
    return is_wide and (strided_columns < strided_reductions or is_short)


def _typical(body: KernelBody, loops: Sequence[Loop]) -> int:
    """The points of the loops: a piece counts as full, any other symbolic extent as `SYMBOLIC_EXTENT`."""
    rows = {loop.name for loop in body.rows}
    points = 1
    for loop in loops:
        if isinstance(loop.extent, int):
            points *= loop.extent
        else:
            is_piece = not free_symbols(loop.extent).isdisjoint(rows)
            points *= body.space.largest(loop.extent) if is_piece else SYMBOLIC_EXTENT
    return points


def locals_of(body: KernelBody) -> range:
    """The operands that never leave the kernel."""
    return range(body.local_from, len(body.operands))


def storing_stage(body: KernelBody, operand: int) -> Stage:
    """The stage that computes the operand."""
    return next(stage for stage in body.stages if any(store.operand == operand for store in stage.stores))


def row_size(body: KernelBody, operand: int) -> Dim:
    """Elements of a computed operand per row: the product of the parallel loops of its stage inside the row."""
    inner = bounded(body, inner_loops(body, storing_stage(body, operand)))
    return extent_of(loop for loop in inner if not loop.is_reduction)


def row_start(body: KernelBody, operand: int) -> Dim:
    """The address of the first element of the current row in the whole operand."""
    stage = storing_stage(body, operand)
    return expr.substitute(stage.domain.address, {loop.name: 0 for loop in inner_loops(body, stage)})
