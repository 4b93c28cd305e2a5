"""Launches on the host, with their work-groups divided over threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from ..errors import CallBoundsError
from ..expr import evaluate
from ..schedule import KernelItem, ScheduleItem
from .address import Address
from .cpu import CpuKernel
from .loops import LoopStep
from .placement import Placement
from .plan import Plan
from .steps import CallbackStep, Launch, TransferStep

NS_PER_WORKER: Final = 20_000
"""Nanoseconds of estimated work per thread: below 40 µs one thread is used, above it two or more.

A worker that is awake begins within a microsecond, a sleeping one after 5 to 50 µs, and the estimate may be twice the
real time.
"""
CHUNKS: Final = 4
"""Fewest chunks of a worker's range: another thread takes what is left of it, a chunk at a time."""
NS_PER_CHUNK: Final = 10_000
"""Nanoseconds of estimated work of a chunk if there are more: the others wait about so long for the last thread."""
BYTES_PER_NS: Final = 20
"""Bytes that one core reads or writes per nanosecond."""


@dataclass(frozen=True, slots=True)
class HostLaunch(Launch):
    """A launch on threads: the work-groups of each worker begin at one of `edges`, and end before the next. A thread
    takes `chunk` of them at a time.
    """

    kernel: CpuKernel
    values: ctypes.Array[ctypes.c_int64]
    arguments: tuple[Address, ...]
    edges: tuple[int, ...]
    chunk: int

    @property
    def workers(self) -> int:
        return len(self.edges) - 1


HostStep = HostLaunch | TransferStep | CallbackStep | LoopStep[Plan[HostLaunch]]


def host_launches(
    kernels: Sequence[CpuKernel], threads: int
) -> Callable[[Placement, ScheduleItem, KernelItem], HostLaunch | None]:
    """A function that plans launches of `kernels` on up to `threads` threads; None for an empty grid."""

    def plan(placement: Placement, item: ScheduleItem, operation: KernelItem) -> HostLaunch | None:
        if any(evaluate(dim, placement.symbols) == 0 for dim in operation.context.global_dims):
            return None
        return _host_launch(placement, item, operation, kernels[operation.kernel_id], threads)

    return plan


def _host_launch(
    placement: Placement, item: ScheduleItem, operation: KernelItem, kernel: CpuKernel, threads: int
) -> HostLaunch:
    spec = placement.layout.outline.program.kernels[operation.kernel_id]
    launch = spec.launch_dims(placement.symbols)
    groups, *others = launch.global_size
    if others != [1, 1]:
        raise CallBoundsError(f"kernel {spec.name} has the grid {launch.global_size}; a CPU kernel has one dimension")
    work_ns = _work_ns(placement, item, spec.buffers)
    workers = max(1, min(threads, groups, work_ns // NS_PER_WORKER))
    chunks = max(workers * CHUNKS, work_ns // NS_PER_CHUNK)
    return HostLaunch(
        item_id=item.item_id,
        name=operation.kernel_name,
        launch=launch,
        kernel=kernel,
        values=(ctypes.c_int64 * len(spec.var_names))(*(placement.symbols[name] for name in spec.var_names)),
        arguments=tuple(placement.address(buffer_id) for buffer_id in spec.buffers),
        edges=tuple(groups * worker // workers for worker in range(workers + 1)),
        chunk=ceil(groups / chunks),
    )


def _work_ns(placement: Placement, item: ScheduleItem, buffers: Sequence[int]) -> int:
    """Estimated nanoseconds of the item on one core: the compiler's estimate scaled to the sizes of the call; without
    one, the time to move its bytes.
    """
    program = placement.layout.outline.program
    if program.schedule.analysis:
        analysis = program.schedule.analysis[item.item_id]
        if analysis.est_ns:
            return analysis.ns_at(placement.symbols, program.symbol_ranges)
    return sum(placement.layout.window_bytes(buffer_id) for buffer_id in set(buffers)) // BYTES_PER_NS
