"""Room for what a watched launch notes about each byte, kept from launch to launch.

Fresh pages cost more than clearing old ones, and launches in tests are small and many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

WORDS: Final = 8
"""32-bit words of a cell: `%cell` of watch.ll."""

_kept: list[NDArray[np.uint32]] = []


def cells_for(sizes: Sequence[int]) -> list[NDArray[np.uint32]]:
    """A cleared cell for each byte of each size; those of the call before are no longer anyone's."""
    ends = list(accumulate(sizes))
    total = ends[-1] if ends else 0
    if not _kept or len(_kept[0]) < total:
        _kept[:] = [np.zeros((total, WORDS), np.uint32)]
    room = _kept[0][:total]
    room.fill(0)
    return [room[end - size : end] for size, end in zip(sizes, ends, strict=True)]
