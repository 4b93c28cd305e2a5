"""How many rows a core reduces together.

Each row in memory is a stream of its own. A core fetches several streams faster than one, because its prefetcher stops
at the end of a page. Data that the rows share is read once. A sum in blocks reduces a block of every row before the
next block.
"""

from __future__ import annotations

from typing import Final

from tensorkiln.expr import free_symbols

from ..loops.accesses import linear_access, loads
from ..loops.body import KernelBody, Stage, inner_loops
from ..loops.domain import extent_of

ROWS: Final = 4
"""Measured on products of a matrix and a vector beyond the caches: 12 GB/s with one row, 19 with 2, 27 with 4, 26 with
8, on one core of Sapphire Rapids."""
LEAST_TERMS: Final = 256
"""Least terms of a row: several cache lines for each of a few accumulators."""


def rows_at_once(body: KernelBody) -> int:
    """How many rows a kernel reduces together: 1 unless its first stage, and only that one, reads long contiguous rows.

    A later stage with loops along a row would need its code repeated for each row.
    """
    first, later = body.stages[0], body.stages[1:]
    loops = inner_loops(body, first)
    if not body.rows or first.combine is None or not loops or any(not loop.is_reduction for loop in loops):
        return 1
    rows, terms = body.space.largest(extent_of(body.rows)), body.space.largest(extent_of(loops))
    is_worth_it = rows >= 2 * ROWS and terms >= LEAST_TERMS and not any(inner_loops(body, stage) for stage in later)
    return ROWS if is_worth_it and _is_stream(body, first) else 1


def _is_stream(body: KernelBody, stage: Stage) -> bool:
    """Whether a stage reads contiguous memory along its last loop, at a different place for each row."""
    names = [loop.name for loop in inner_loops(body, stage)]
    rows = {loop.name for loop in body.rows}
    found = (linear_access(load, body.nodes, names) for load in loads(stage.elements, body.nodes))
    return any(
        access is not None
        and not access.load.conditions
        and access.strides[-1] == 1
        and not rows.isdisjoint(free_symbols(access.offset))
        for access in found
    )
