"""The tiles of a contraction, and how the threads of a work-group share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SIDE: Final = 16
"""Threads along the rows and along the columns of a tile."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A work-group computes `rows` by `columns` results, `depth` products at a time; a thread its share of them."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int
