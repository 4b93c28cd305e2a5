"""The tables that `kiln run` prints."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np
from rich.table import Table

from ..runtime.item_profile import ItemProfile

_SHOWN_ELEMENTS = 8


def profile_table(profiles: Sequence[Sequence[ItemProfile]]) -> Table:
    """One row per item of the program: its launch sizes, the compiler's estimate for one processor or a whole GPU, and
    the median of its times over all profiles.
    """
    times = [median(item.ns for item in runs) for runs in zip(*profiles, strict=True)]
    total = sum(times)
    table = Table("item", "operation", "name", "grid", "group", "threads", "estimate", "time", "share")
    for item, ns in zip(profiles[0], times, strict=True):
        grid = _dims(item.launch.global_size) if item.launch else ""
        group = _dims(item.launch.local_size) if item.launch and item.launch.local_size else ""
        share = f"{ns / total:.0%}" if total else ""
        estimate = duration(item.estimate_ns) if item.estimate_ns else ""
        taken = (str(item.threads), estimate, duration(ns), share)
        table.add_row(str(item.item_id), item.op, item.name, grid, group, *taken)
    estimated = sum(item.estimate_ns for item in profiles[0])
    table.add_row("", "", "all items", "", "", "", duration(estimated) if estimated else "", duration(total), "")
    return table


def output_table(arrays: Sequence[np.ndarray]) -> Table:
    """One row per output, with its first elements."""
    table = Table("output", "dtype", "shape", "begins with")
    for index, array in enumerate(arrays):
        first = " ".join(str(value) for value in array.reshape(-1)[:_SHOWN_ELEMENTS])
        more = " ..." if array.size > _SHOWN_ELEMENTS else ""
        table.add_row(str(index), str(array.dtype), str(tuple(array.shape)), first + more)
    return table


def duration(ns: float) -> str:
    """Nanoseconds in a readable unit."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns:.0f} ns"


def _dims(sizes: tuple[int, int, int]) -> str:
    return " x ".join(map(str, sizes))
