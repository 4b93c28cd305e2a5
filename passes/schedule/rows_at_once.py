"""How many rows a core reduces together.

Each row that lies in memory is a stream of its own, and a core fetches several sooner than one: it does not look ahead
beyond a page. What the rows share is read once. A sum in blocks goes through a block of each before the next.
"""

from __future__ import annotations

from typing import Final

from tensorkiln.expr import free_symbols

from ..loops.accesses import linear_access, loads
from ..loops.body import KernelBody, Stage
from ..loops.domain import extent_of
from .tiling import inner_loops

ROWS: Final = 4
"""Measured on products of a matrix and a vector beyond the caches: 12 GB/s with one row, 19 with 2, 27 with 4, 26 with
8, on one core of Sapphire Rapids."""
LEAST_TERMS: Final = 256
"""Of a row, which are several cache lines for each of a few accumulators."""


def rows_at_once(body: KernelBody) -> int:
    """How many rows a kernel reduces together: 1 unless its first stage reads long contiguous rows, and no other does.

    What a later stage does along a row is done for each row alone, and would be written so many times.
    """
    first, later = body.stages[0], body.stages[1:]
    loops = inner_loops(body, first)
    if not body.rows or first.combine is None or not loops or any(not loop.is_reduction for loop in loops):
        return 1
    rows, terms = body.space.largest(extent_of(body.rows)), body.space.largest(extent_of(loops))
    is_worth_it = rows >= 2 * ROWS and terms >= LEAST_TERMS and not any(inner_loops(body, stage) for stage in later)
    return ROWS if is_worth_it and _is_stream(body, first) else 1


def _is_stream(body: KernelBody, stage: Stage) -> bool:
    """Whether a stage goes through contiguous memory along its last loop, each row through its own."""
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
