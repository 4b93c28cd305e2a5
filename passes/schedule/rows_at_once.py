"""How many rows a core reduces together.

Each row that lies in memory is a stream of its own, and a core fetches several sooner than one: it does not look ahead
beyond a page. What the rows share is read once.
"""

from __future__ import annotations

from typing import Final

from tensorkiln.expr import free_symbols

from ..loops.accesses import Access, linear_access, loads
from ..loops.body import KernelBody, Stage
from ..loops.domain import extent_of
from .tiling import inner_loops

ROWS: Final = 4
"""Measured on products of a matrix and a vector beyond the caches: 12 GB/s with one row, 19 with 2, 27 with 4, 26 with
8, on one core of Sapphire Rapids."""
LEAST_TERMS: Final = 256
"""Of a row, which are several cache lines for each of a few accumulators."""
MOST_BYTES: Final = 32 << 10
"""Of rows that are read once more by later stages: they stay in the first cache."""


def rows_at_once(body: KernelBody) -> int:
    """How many rows the first stage of a kernel reduces together: 1 unless it reads long contiguous rows."""
    first, later = body.stages[0], body.stages[1:]
    loops = inner_loops(body, first)
    if not body.rows or first.combine is None or not loops or any(not loop.is_reduction for loop in loops):
        return 1
    rows, terms = body.space.largest(extent_of(body.rows)), body.space.largest(extent_of(loops))
    streams = _streams(body, first)
    if rows < 2 * ROWS or terms < LEAST_TERMS or not streams:
        return 1
    read = ROWS * terms * sum(access.load.dtype.itemsize for access in streams)
    is_read_again = any(inner_loops(body, stage) for stage in later)
    return 1 if is_read_again and read > MOST_BYTES else ROWS


def _streams(body: KernelBody, stage: Stage) -> list[Access]:
    """The reads of a stage that go through contiguous memory along its last loop, each row through its own."""
    names = [loop.name for loop in inner_loops(body, stage)]
    rows = {loop.name for loop in body.rows}
    found = (linear_access(load, body.nodes, names) for load in loads(stage.elements, body.nodes))
    return [
        access
        for access in found
        if access is not None
        and not access.load.conditions
        and access.strides[-1] == 1
        and not rows.isdisjoint(free_symbols(access.offset))
    ]
