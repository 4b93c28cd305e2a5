"""One step of a schedule, and its estimates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pydantic import Field

from ..expr import Dim, bounds, evaluate
from ..nodes.base import Record
from ..sizes import WireSize
from .operations import Operation


class ScheduleItem(Record):
    """One step; `item_id` is its position in `Schedule.items`."""

    item_id: int
    operation: Operation
    depends_on: tuple[int, ...] = ()
    dependents: tuple[int, ...] = ()


class ItemAnalysis(Record):
    """Estimates for one item, by the compiler's model of the target; `est_ns` nanoseconds at the symbols' upper bounds,
    on one core of a CPU or the whole of a GPU.

    `flops` are all operations, integer ones too, each counted as the additions of 32 bits that take as long. Of a GPU
    `smem_bytes` is the shared memory of a work-group, at the upper bounds too, `occupancy` the part of the threads that
    can be resident, and `regs_per_thread` what the assembler says, 0 without one.
    """

    item_id: int = Field(ge=0)
    flops: WireSize = 0
    bytes_read: WireSize = 0
    bytes_written: WireSize = 0
    regs_per_thread: int = Field(default=0, ge=0)
    smem_bytes: int = Field(default=0, ge=0)
    occupancy: float = Field(default=1.0, ge=0.0, le=1.0)
    est_ns: int = Field(default=0, ge=0)

    def ns_at(self, symbols: Mapping[str, int], ranges: Mapping[str, tuple[int, int]]) -> int:
        """`est_ns` scaled from the upper bounds in `ranges` to the values in `symbols`, in proportion to `work`."""
        most = self.most_work(ranges)
        return self.est_ns * sum(evaluate(dim, symbols) for dim in self.work) // most if most else self.est_ns

    @property
    def work(self) -> tuple[Dim, ...]:
        """Operations, bytes read and bytes written; `ns_at` scales by their sum."""
        return self.flops, self.bytes_read, self.bytes_written

    def most_work(self, ranges: Mapping[str, tuple[int, int]]) -> int:
        """The sum of `work` at the upper bounds of the symbols."""
        return _at_most(self.work, tuple(ranges.items()))


@lru_cache(maxsize=4096)
def _at_most(dims: tuple[Dim, ...], ranges: tuple[tuple[str, tuple[int, int]], ...]) -> int:
    return sum(bounds(dim, dict(ranges))[1] for dim in dims)
