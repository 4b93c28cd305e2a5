"""The arguments of realised kernels, from the schedule that they were realised by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialect.mlir import ir
from passes.schedule.attach import ScheduledKernel, read_buffers, scheduled_kernels
from passes.schedule.record import threads_of
from tensorkiln.buffers import Buffer
from tensorkiln.expr import Dim
from tensorkiln.schedule import work_groups


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """The arguments of a realised kernel, in order: pointers to `buffers`, by name and shape, then `symbols`.

    If a work-group is one call, the range of work-groups follows; otherwise `threads` run each. `shared` has the sizes
    of a work-group's shared arrays. There are `groups` work-groups, or none if an extent in `axes` is 0.
    """

    kernel: str
    buffers: Sequence[tuple[str, Sequence[Dim]]]
    symbols: Mapping[str, tuple[int, int]]
    groups: Dim
    axes: Sequence[Dim]
    threads: int
    shared: Sequence[Dim]


@dataclass(frozen=True, slots=True)
class Realised:
    """A realised module, and the arguments of its kernels by the name of their entry."""

    module: ir.Module
    memories: Mapping[str, KernelMemory]

    @staticmethod
    def of(scheduled: ir.Module, module: ir.Module) -> Realised:
        """The module that `scheduled` was realised as."""
        buffers = read_buffers(scheduled)
        return Realised(module, {each.entry: _memory_of(each, buffers) for each in scheduled_kernels(scheduled)})


def _memory_of(kernel: ScheduledKernel, buffers: Sequence[Buffer]) -> KernelMemory:
    item, space = kernel.item, kernel.body.space
    used = [buffers[number] for number in kernel.step.arguments]
    return KernelMemory(
        kernel.entry,
        # In the form that the body's extents have.
        [(f"{buffer.role} {buffer.id}", tuple(map(space.floored, buffer.shape))) for buffer in used],
        kernel.body.function.symbols,
        work_groups(item.context)[0],
        [item.iter.axes[number].extent for number in item.iter.mapping.block],
        0 if item.context.device == "CPU" else threads_of(item),
        [array.elements for array in item.shared],
    )
