"""Choose the rows of a kernel: which loops are spread over work-groups, and which each row runs through.

A row should be long enough to be worth its loop overhead, short enough to leave rows for every thread, and should end
with the loop that walks memory contiguously.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensorkiln import expr
from tensorkiln.expr import Dim

from .accesses import linear_access, loads
from .domain import Loop, extent_of
from .stages import KernelBody, Stage, trace_stage

MIN_POINTS = 1024
CHUNK = 16384
"""Points of a piece of a long loop that is the only one: 64 KiB of float32."""
COLUMN_CHUNK = 1024
"""Columns whose accumulators a work-group keeps at hand while it walks down the rows."""
SHORT_REDUCTION = 64
GROUP_POINTS = 32768
"""Points of a work-group: small enough for every thread to get one, large enough to amortise its start."""
SYMBOLIC_EXTENT = 256


@dataclass(frozen=True, slots=True)
class Rows:
    """The first `kept` shared loops are rows; the next one is cut into pieces of `chunk` when that is not 0."""

    kept: int
    chunk: int


def inner_loops(body: KernelBody, stage: Stage) -> tuple[Loop, ...]:
    """The loops of a stage inside a row."""
    return tuple(loop for loop in stage.domain.loops if loop not in body.rows)


def choose_rows(body: KernelBody) -> Rows:
    """How to split the loops that all stages share."""
    reductions = [stage for stage in body.stages if stage.combine is not None]
    if not reductions:
        kept = _rows_of_maps(body)
    elif body.rows and all(_prefers_columns(body, stage) for stage in reductions):
        kept = len(body.rows) - 1
    else:
        kept = len(body.rows)
    limit = COLUMN_CHUNK if reductions else CHUNK
    is_cut = kept == len(body.rows) - 1 and (bool(reductions) or kept == 0)
    is_long = is_cut and body.space.largest(body.rows[kept].extent) > 2 * limit
    return Rows(kept, limit if is_long else 0)


def with_rows(body: KernelBody, rows: Rows) -> KernelBody:
    """`body` with the rows chosen."""
    demoted = replace(body, rows=body.rows[: rows.kept])
    return _chunked(demoted, body.rows[rows.kept], rows.chunk) if rows.chunk else demoted


def rows_per_group(body: KernelBody) -> int:
    """How many rows a work-group takes."""
    points = sum(_typical(inner_loops(body, stage)) for stage in body.stages)
    return max(1, GROUP_POINTS // max(points, 1))


def _rows_of_maps(body: KernelBody) -> int:
    """How many loops stay rows when all stages are maps: the fewest inner ones that make a row long enough."""
    kept = len(body.rows)
    points: Dim = max((extent_of(inner_loops(body, stage)) for stage in body.stages), key=body.space.largest)
    while kept > 0 and isinstance(points, int) and points < MIN_POINTS:
        kept -= 1
        points = expr.mul(points, body.rows[kept].extent)
    return kept


def _prefers_columns(body: KernelBody, stage: Stage) -> bool:
    """Whether the loop to run innermost is the last parallel one: memory is contiguous along it, or sums are short."""
    if not stage.domain.reduction or inner_loops(body, stage) != stage.domain.reduction:
        return False
    names = [loop.name for loop in stage.domain.loops]
    column, last = body.rows[-1], stage.domain.reduction[-1]
    along_column = along_reduction = False
    for load in loads(stage.elements, body.nodes):
        access = linear_access(load, body.nodes, names)
        if access is None:
            continue
        stride = dict(zip(names, access.strides, strict=True))
        along_column |= stride[column.name] == 1
        along_reduction |= stride[last.name] == 1
    points = extent_of(stage.domain.reduction)
    is_short = isinstance(points, int) and points <= SHORT_REDUCTION
    is_wide = body.space.largest(column.extent) >= 8
    return is_wide and ((along_column and not along_reduction) or is_short)


def _chunked(body: KernelBody, loop: Loop, size: int) -> KernelBody:
    """`body` with `loop`, which every stage runs through, cut into pieces of `size` that become rows."""
    block = Loop(f"{loop.name}_block", expr.ceildiv(loop.extent, size))
    start = expr.mul(body.space.add(block.name, block.extent), size)
    piece = Loop(f"{loop.name}_piece", expr.minimum(size, expr.sub(loop.extent, start)))
    values: dict[str, Dim] = {loop.name: expr.add(start, body.space.add(piece.name, piece.extent))}
    numbers = {value: number for number, value in enumerate(body.operands)}
    rows = (*body.rows, block)
    stages: list[Stage] = []
    for stage in body.stages:
        rest = [piece if own == loop else own for own in stage.domain.loops if own not in body.rows]
        domain = stage.domain.over((*rows, *rest), values)
        stages.append(trace_stage(domain, stage.roots, body.space, body.nodes, numbers))
    return replace(body, rows=rows, stages=tuple(stages))


def _typical(loops: Sequence[Loop]) -> int:
    """The points of the loops, a symbolic extent being taken for `SYMBOLIC_EXTENT`."""
    points = 1
    for loop in loops:
        points *= loop.extent if isinstance(loop.extent, int) else SYMBOLIC_EXTENT
    return points
