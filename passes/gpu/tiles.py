"""The tiles of a contraction, and how the threads of a work-group share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tensorkiln import expr
from tensorkiln.expr import Dim

from .machine import VECTOR_BYTES

SIDE: Final = 16
"""Threads along the rows and along the columns of a tile."""


THREADS: Final = SIDE * SIDE
STAGED_BYTES: Final = 16 << 10
"""Bytes of results that go through shared memory at a time: all of a tile of 64 by 64 floats."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A work-group computes `rows` by `columns` results, `depth` products at a time; a thread computes its share of
    them.
    """

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int

    def rows_at_once(self, itemsize: int) -> int:
        """The number of neighbouring rows of each thread that go through shared memory together."""
        return max(1, min(together(self.thread_rows, itemsize), STAGED_BYTES // (SIDE * self.columns * itemsize)))


def together(count: int, itemsize: int) -> int:
    """The number of neighbouring elements, of a thread's `count`, that it loads at once."""
    return min(count, VECTOR_BYTES // itemsize)


def place_of(thread: Dim, count: int, number: int, itemsize: int) -> Dim:
    """The place across a tile of element `number` of a thread's `count` elements.

    Neighbouring threads load without gaps at the same time, and so use all banks of shared memory.
    """
    width = together(count, itemsize)
    which, inside = divmod(number, width)
    return expr.add(which * SIDE * width, expr.mul(thread, width), inside)


def stride(width: int, itemsize: int) -> int:
    """Elements from one step of an operand's tile to the next: its width and a vector more.

    Without the padding, threads that store neighbouring steps of one row would conflict on one bank.
    """
    return width + VECTOR_BYTES // itemsize
