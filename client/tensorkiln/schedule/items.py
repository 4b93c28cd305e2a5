"""One step of a schedule, and what is estimated of it."""

from __future__ import annotations

from pydantic import Field

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
    """Estimates for one item; `occupancy` is a fraction, `est_ns` nanoseconds at the symbols' upper bounds.

    `flops` are all operations, integer ones too, each counted as the additions of 32 bits that take as long. `est_ns`
    is for one core of a CPU, see `core_ns`; of the items of a GPU only the proportions mean something.
    """

    item_id: int = Field(ge=0)
    flops: WireSize = 0
    bytes_read: WireSize = 0
    bytes_written: WireSize = 0
    regs_per_thread: int = Field(default=0, ge=0)
    smem_bytes: int = Field(default=0, ge=0)
    occupancy: float = Field(default=1.0, ge=0.0, le=1.0)
    est_ns: int = Field(default=0, ge=0)
