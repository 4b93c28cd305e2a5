"""The five operations of schedule items."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..dtypes import DType
from ..limits import MOST_TURNS
from ..nodes import CustomAttr
from ..nodes.base import Record
from ..sizes import WireSize
from .context import ScheduleContext
from .hints import LoopHint, Prefetch, ReductionPlan
from .iteration import IterSpace
from .memory import BufferInfo


class OpRef(Record):
    """A node that was fused into a kernel: its index in the graph's `nodes` and its kind."""

    node: int
    kind: str


class SharedArray(Record):
    """An array that the threads of a work-group share while they run: `elements` of `dtype`, contents undefined."""

    dtype: DType
    elements: WireSize


class KernelItem(Record):
    """One launch of `CompiledProgram.kernels[kernel_id]`; `ops` are the fused nodes in topological order.

    `shared` are the arrays of a work-group, which last no longer than it.
    """

    op: Literal["kernel"] = "kernel"
    kernel_id: int = Field(ge=0)
    kernel_name: str
    ops: tuple[OpRef, ...] = ()
    inputs: tuple[BufferInfo, ...] = ()
    outputs: tuple[BufferInfo, ...] = ()
    shared: tuple[SharedArray, ...] = ()
    iter: IterSpace
    reduce: ReductionPlan | None = None
    hints: tuple[LoopHint, ...] = ()
    context: ScheduleContext

    @model_validator(mode="after")
    def _names_its_own_axes(self) -> KernelItem:
        axes = self.iter.axes
        hinted = [hint.axis for hint in self.hints if not isinstance(hint, Prefetch)]
        reduced = self.reduce.axes if self.reduce else ()
        for index in (*hinted, *reduced):
            if not 0 <= index < len(axes):
                raise ValueError(f"kernel {self.kernel_name} names axis {index} but has {len(axes)} axes")
        for index in reduced:
            if axes[index].role != "reduction":
                raise ValueError(f"kernel {self.kernel_name} reduces axis {index}, which has the role normal")
        return self


class MemoryTransfer(Record):
    """A copy of `dims` elements; strides are in elements, None meaning contiguous. `size_bytes` is the flat size."""

    op: Literal["memory_transfer"] = "memory_transfer"
    transfer_id: int = Field(ge=0)
    src_var: int
    dst_var: int
    src_device: str
    dst_device: str
    dims: tuple[WireSize, ...]
    src_strides: tuple[WireSize, ...] | None = None
    dst_strides: tuple[WireSize, ...] | None = None
    size_bytes: WireSize
    is_async: bool = False
    stream: int | None = None

    @model_validator(mode="after")
    def _ranks_agree(self) -> MemoryTransfer:
        for label, strides in (("src_strides", self.src_strides), ("dst_strides", self.dst_strides)):
            if strides is not None and len(strides) != len(self.dims):
                raise ValueError(f"a transfer of rank {len(self.dims)} has {len(strides)} {label}")
        return self


class Synchronization(Record):
    """An ordering point; `event` is the number of the event and given exactly for `sync_type` event."""

    op: Literal["synchronization"] = "synchronization"
    sync_id: int = Field(ge=0)
    sync_type: Literal["barrier", "fence", "event"]
    event: int | None = None
    scope: Literal["threadgroup", "device", "system"] = "device"
    devices: tuple[str, ...] = ()
    stream: int | None = None

    @model_validator(mode="after")
    def _event_has_its_number(self) -> Synchronization:
        if (self.sync_type == "event") != (self.event is not None):
            raise ValueError("a synchronization has an event number exactly when its sync_type is event")
        return self


class HostCallback(Record):
    """A registered custom operation, evaluated by the host; `attributes` are those of the graph's node."""

    op: Literal["host_callback"] = "host_callback"
    callback_id: int = Field(ge=0)
    callback_name: str
    input_vars: tuple[int, ...] = ()
    output_vars: tuple[int, ...] = ()
    attributes: tuple[CustomAttr, ...] = ()


class Loop(Record):
    """Turns of the program `body` as long as the program `condition` gives true.

    Both are positions in `CompiledProgram.inner`. The first turn reads the buffers `input_vars`. The
    results of the body replace the first of these for the next turn, and those of the last turn are in `output_vars`.
    Without any turn, `output_vars` are copies of the first of `input_vars`. More than `most` turns are an error of the
    call.
    """

    op: Literal["loop"] = "loop"
    loop_id: int = Field(ge=0)
    condition: int = Field(ge=0)
    body: int = Field(ge=0)
    input_vars: tuple[int, ...]
    output_vars: tuple[int, ...] = Field(min_length=1)
    most: int = Field(ge=1, le=MOST_TURNS)

    @model_validator(mode="after")
    def _replaces_inputs(self) -> Loop:
        if len(self.output_vars) > len(self.input_vars):
            raise ValueError(f"loop {self.loop_id} gives {len(self.output_vars)} of {len(self.input_vars)} values")
        return self


Operation = Annotated[KernelItem | MemoryTransfer | Synchronization | HostCallback | Loop, Field(discriminator="op")]
