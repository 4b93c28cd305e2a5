"""Launches on the host, with their work-groups divided over threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..errors import CallBoundsError
from ..expr import evaluate
from ..schedule import KernelItem, ScheduleItem
from .address import Address
from .cpu import CpuKernel, KernelFunction
from .loops import LoopStep
from .placement import Placement
from .plan import Plan
from .steps import CallbackStep, Launch, TransferStep
from .threads import split

NS_PER_WORKER: Final = 500_000
"""Nanoseconds of estimated work per thread: below 1 ms one thread is used, above it two or more.

Handing work to a pool and back takes 20 to 70 µs, more on a busy machine, and the estimate may be twice the real time.
"""
BYTES_PER_NS: Final = 20
"""Bytes that one core reads or writes per nanosecond."""


@dataclass(frozen=True, slots=True)
class HostLaunch(Launch):
    """A launch on threads; each of `ranges` is the half-open range of work-groups of one worker."""

    function: KernelFunction
    values: ctypes.Array[ctypes.c_int64]
    arguments: tuple[Address, ...]
    ranges: tuple[tuple[int, int], ...]

    @property
    def workers(self) -> int:
        return len(self.ranges)


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
    workers = max(1, min(threads, groups, _work_ns(placement, item, spec.buffers) // NS_PER_WORKER))
    return HostLaunch(
        item_id=item.item_id,
        name=operation.kernel_name,
        launch=launch,
        function=kernel.function,
        values=(ctypes.c_int64 * len(spec.var_names))(*(placement.symbols[name] for name in spec.var_names)),
        arguments=tuple(placement.address(buffer_id) for buffer_id in spec.buffers),
        ranges=split(groups, workers),
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
