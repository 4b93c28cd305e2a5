"""Sizes around every limit by which a contraction is cut (`passes/cpu/blocking.py`), and a few of no consequence.

Register tiles have 6 rows, or 14 with AVX-512, by 4, 8, 16 or 32 columns. A block has at most 224 rows, 1 KiB of
columns and 1 KiB of depth: 256 elements of 4 bytes, 128 of 8.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorkiln.expr import Dim

from .composer import Composer

ROWS = (4, 5, 1, 3, 6, 7, 8, 12, 13, 14, 15, 29, 56, 223, 224, 225, 449)
COLUMNS = (8, 16, 1, 4, 7, 9, 15, 17, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257, 300, 513)
DEPTH = (4, 8, 1, 3, 5, 7, 16, 31, 33, 64, 127, 128, 129, 255, 256, 257, 300, 513)
SMALL = (2, 1, 3, 4, 5, 8)
CHANNELS = (4, 8, 3, 1, 12, 16, 33)
IMAGE = (4, 3, 5, 6, 7, 8, 9, 12, 14, 17)


def matrix_sizes(composer: Composer, batch: int = 1) -> tuple[Dim, Dim, Dim]:
    """Rows, columns and depth of a product; the first to be drawn may be large, the others have what is left."""
    tables: dict[str, Sequence[int]] = {"rows": ROWS, "columns": COLUMNS, "depth": DEPTH}
    order = composer.pick([("rows", "columns", "depth"), ("depth", "rows", "columns"), ("columns", "depth", "rows")])
    left = composer.points // batch
    found: dict[str, Dim] = {}
    for name in order:
        # Each other extent has a few elements at least, so that large ones meet a tile and not a single row.
        spare = 8 ** (len(order) - len(found) - 1)
        found[name] = composer.dim(tables[name], max(left // spare, 1))
        left //= max(composer.value(found[name]), 1)
    return found["rows"], found["columns"], found["depth"]
