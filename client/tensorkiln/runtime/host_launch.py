"""Launches on the host, their work divided over threads."""

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
"""Nanoseconds of work below which another thread does not pay: below 1 ms there is one, two above.

Handing work to a pool and back takes 20 to 70 µs, more where other processes want the processors, and the estimate may
be twice what it takes.
"""
BYTES_PER_NS: Final = 20
"""What a core reads or writes of memory in a nanosecond."""


@dataclass(frozen=True, slots=True)
class HostLaunch(Launch):
    """A launch on threads; each of `ranges` is the share of one worker."""

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
    """Plans launches of `kernels` on up to `threads` threads; one whose grid of threads is empty is left out."""

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
    """Estimated time of the item on one core: the compiler's, in proportion to what it does at the sizes of the call;
    without one, the time that its bytes take.
    """
    program = placement.layout.outline.program
    if program.schedule.analysis:
        analysis = program.schedule.analysis[item.item_id]
        if analysis.est_ns:
            return analysis.ns_at(placement.symbols, program.symbol_ranges)
    return sum(placement.layout.window_bytes(buffer_id) for buffer_id in set(buffers)) // BYTES_PER_NS
