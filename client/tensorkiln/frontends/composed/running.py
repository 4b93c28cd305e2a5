"""Running (prefix) reductions, by tables of which elements, and which blocks of them, precede which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

from ... import build
from ...build import Tensor
from .refusal import Refusal, unsupported

MAX_RUNNING: Final = 1 << 12
"""The longest axis, or the most blocks of one, since the table has its square of elements."""
BLOCK: Final = 64
LONG: Final = 4 * BLOCK
LONGEST: Final = MAX_RUNNING * BLOCK
"""Elements of a block, and of the shortest and longest static axis that is divided into blocks. Narrow floats are not:
each table would round them.
"""


def running(
    x: Tensor,
    axis: int,
    combine: Callable[[Tensor], Tensor],
    neutral: float,
    is_reversed: bool = False,
    is_exclusive: bool = False,
    *,
    refuse: Refusal = unsupported,
) -> Tensor:
    """Reduce each element with those before it along `axis`.

    `combine` reduces the last axis of a table that has `neutral` in place of excluded elements. `refuse` is called for
    an axis longer than `MAX_RUNNING`, or `BLOCK` times that if it is divided into blocks.
    """
    extent = x.shape[axis]
    is_divided = isinstance(extent, int) and extent >= LONG and not x.dtype.is_half
    most = LONGEST if is_divided else MAX_RUNNING
    if x.builder.bounds(extent)[1] > most:
        refuse(f"axis {axis} has the extent {extent}, which may be more than {most}")
    reduced = _Running(combine, neutral, is_reversed)
    rows = build.moveaxis(x, axis, -1)
    if isinstance(extent, int) and is_divided:
        if axis not in (-1, x.rank - 1):
            # Each element is read for a whole block, which takes three times as long across the rows of memory.
            rows = x.builder.append("contiguous", rows.dtype, rows.shape, in_var=rows.var)
        made = reduced.in_blocks(rows, extent, is_exclusive)
    else:
        made = reduced.of(rows, is_exclusive)
    return build.moveaxis(made, -1, axis)


@dataclass(frozen=True, slots=True)
class _Running:
    """Reductions of rows with those before, or after, each element."""

    combine: Callable[[Tensor], Tensor]
    neutral: float
    is_reversed: bool

    def of(self, rows: Tensor, is_exclusive: bool) -> Tensor:
        places = build.arange(rows.builder, rows.shape[-1])
        own, other = places.unsqueeze([1]), places
        if self.is_reversed:
            own, other = other, own
        is_before = other < own if is_exclusive else other <= own
        return self._combined(build.where(is_before, rows.unsqueeze([-2]), self.neutral), rows)

    def in_blocks(self, rows: Tensor, extent: int, is_exclusive: bool) -> Tensor:
        """Within blocks, and of whole blocks: two tables of a fraction of the elements."""
        *outer, _ = rows.shape
        count = ceil(extent / BLOCK)
        padded = build.pad(rows, (*((0, 0) for _ in outer), (0, count * BLOCK - extent)), self.neutral)
        blocks = padded.reshape([*outer, count, BLOCK])
        within = self.of(blocks, is_exclusive).unsqueeze([-1])
        before = self.of(self._combined(blocks, rows), True).unsqueeze([-1, -2])
        is_within = build.equal(build.arange(rows.builder, 2), 1)
        both = self._combined(build.where(is_within, within, before), rows)
        return both.reshape([*outer, count * BLOCK])[..., :extent]

    def _combined(self, table: Tensor, rows: Tensor) -> Tensor:
        return self.combine(table).cast(rows.dtype)
