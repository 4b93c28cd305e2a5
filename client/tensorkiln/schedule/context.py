"""The device and the launch dimensions of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, model_validator

from ..expr import Dim, ceildiv
from ..nodes.base import Record
from ..sizes import WireSize

Dim3 = tuple[Dim, Dim, Dim]


def ensure3(dims: Sequence[Dim]) -> Dim3:
    """The first three of `dims`, padded with 1."""
    x, y, z = (*dims, 1, 1, 1)[:3]
    return x, y, z


class ScheduleContext(Record):
    """`global_dims` are total threads, `local_dims` threads per work-group, both x, y, z."""

    global_dims: tuple[WireSize, ...]
    local_dims: tuple[WireSize, ...] = (1, 1, 1)
    upcasted: int = Field(default=0, ge=0)
    device: str
    stream: int | None = None

    @model_validator(mode="after")
    def _has_three_dims(self) -> ScheduleContext:
        for label, dims in (("global_dims", self.global_dims), ("local_dims", self.local_dims)):
            if len(dims) != 3:
                raise ValueError(f"Scheduled.context.{label} must be length-3")
        if any(isinstance(dim, int) and dim < 1 for dim in self.local_dims):
            raise ValueError(f"Scheduled.context.local_dims {self.local_dims} has a dimension below 1")
        return self


def work_groups(context: ScheduleContext) -> Dim3:
    """The grid in work-groups, as in `ProgramSpec.global_size`: total threads over threads per group, rounded up."""
    pairs = zip(context.global_dims, context.local_dims, strict=True)
    return ensure3([ceildiv(total, local) for total, local in pairs])
