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
"""Of results that go through shared memory at a time: all of a tile of 64 by 64 floats."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A work-group computes `rows` by `columns` results, `depth` products at a time; a thread its share of them."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int

    def rows_at_once(self, itemsize: int) -> int:
        """Of the rows of each thread, as many as go through shared memory together: neighbours."""
        return max(1, min(together(self.thread_rows, itemsize), STAGED_BYTES // (SIDE * self.columns * itemsize)))


def together(count: int, itemsize: int) -> int:
    """Of `count` elements of a thread, as many as it loads at once, which are neighbours."""
    return min(count, VECTOR_BYTES // itemsize)


def place_of(thread: Dim, count: int, number: int, itemsize: int) -> Dim:
    """Where across a tile one of the `count` elements of a thread is.

    What neighbouring threads load at the same time is without gaps, so that it comes from all banks of the memory.
    """
    width = together(count, itemsize)
    which, inside = divmod(number, width)
    return expr.add(which * SIDE * width, expr.mul(thread, width), inside)


def stride(width: int, itemsize: int) -> int:
    """Elements from one step of a tile of an operand to the next: a vector more than it is wide.

    Threads that store neighbouring steps of one row would else all wait for the same bank.
    """
    return width + VECTOR_BYTES // itemsize
