"""The steps of a plan: each schedule item with its sizes evaluated and its work divided over threads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

from ..errors import CallBoundsError, DeviceError
from ..expr import Dim, evaluate
from ..nodes import CustomAttr
from ..schedule import HostCallback, KernelItem, MemoryTransfer, ScheduleItem, contiguous_strides
from .loaded import LoadedProgram
from .placement import Placement
from .steps import CallbackStep, KernelStep, Step, TransferStep, Window
from .threads import split

NS_PER_WORKER: Final = 25_000
"""Nanoseconds of work below which another thread does not pay: handing work to a pool and back takes about 20 µs."""

BYTES_PER_NS: Final = 8
FLOPS_PER_NS: Final = 8
"""What one core does at least once data streams from memory; used where the compiler gave no time."""


def plan_steps(loaded: LoadedProgram, placement: Placement, threads: int) -> tuple[Step, ...]:
    """The steps in order of execution. Synchronization needs none, since every step ends before the next begins.

    A kernel whose iteration grid is empty is left out. CallBoundsError when a launch size breaks the launch rules.
    """
    schedule = loaded.program.schedule
    steps = [_step(loaded, placement, schedule.items[item_id], threads) for item_id in schedule.execution_order]
    return tuple(step for step in steps if step is not None)


def _step(loaded: LoadedProgram, placement: Placement, item: ScheduleItem, threads: int) -> Step | None:
    match item.operation:
        case KernelItem() as operation:
            if any(evaluate(dim, placement.symbols) == 0 for dim in operation.context.global_dims):
                return None
            return _kernel_step(loaded, placement, item, operation, threads)
        case MemoryTransfer() as operation:
            return _transfer_step(placement, item.item_id, operation)
        case HostCallback() as operation:
            return _callback_step(loaded, placement, item.item_id, operation)
        case _:
            return None


def _kernel_step(
    loaded: LoadedProgram, placement: Placement, item: ScheduleItem, operation: KernelItem, threads: int
) -> KernelStep:
    spec, kernel = loaded.program.kernels[operation.kernel_id], loaded.kernels[operation.kernel_id]
    launch = spec.launch_dims(placement.symbols)
    groups, *others = launch.global_size
    if others != [1, 1]:
        raise CallBoundsError(f"kernel {spec.name} has the grid {launch.global_size}; a CPU kernel has one dimension")
    workers = max(1, min(threads, groups, _work_ns(loaded, placement, item, spec.buffers) // NS_PER_WORKER))
    return KernelStep(
        item_id=item.item_id,
        name=operation.kernel_name,
        function=kernel.function,
        values=(ctypes.c_int64 * len(spec.var_names))(*(placement.symbols[name] for name in spec.var_names)),
        arguments=tuple(placement.address(buffer_id) for buffer_id in spec.buffers),
        ranges=split(groups, workers),
        launch=launch,
    )


def _work_ns(loaded: LoadedProgram, placement: Placement, item: ScheduleItem, buffers: Sequence[int]) -> int:
    """Estimated time of the item on one core: the compiler's where it is exact, else from operations and bytes."""
    program = loaded.program
    if program.schedule.analysis:
        analysis = program.schedule.analysis[item.item_id]
        if analysis.est_ns and not program.symbols:
            return analysis.est_ns
        flops = evaluate(analysis.flops, placement.symbols)
        moved = evaluate(analysis.bytes_read, placement.symbols) + evaluate(analysis.bytes_written, placement.symbols)
        if flops or moved:
            return max(flops // FLOPS_PER_NS, moved // BYTES_PER_NS)
    return sum(placement.window_bytes(buffer_id) for buffer_id in set(buffers)) // BYTES_PER_NS


def _transfer_step(placement: Placement, item_id: int, operation: MemoryTransfer) -> TransferStep:
    source = _strided(placement, item_id, operation, operation.src_var, operation.src_strides)
    target = _strided(placement, item_id, operation, operation.dst_var, operation.dst_strides)
    if source.dtype != target.dtype:
        raise DeviceError(f"transfer item {item_id} is from {source.dtype} to {target.dtype}; compile it again")
    return TransferStep(item_id, f"transfer_{operation.transfer_id}", source, target)


def _strided(
    placement: Placement, item_id: int, operation: MemoryTransfer, buffer_id: int, strides: tuple[Dim, ...] | None
) -> Window:
    """The window of a transfer into a buffer; strides that are the row-major ones are dropped."""
    buffer = placement.loaded.program.buffers[buffer_id]
    itemsize = buffer.dtype.itemsize
    shape = tuple(evaluate(dim, placement.symbols) for dim in operation.dims)
    steps: tuple[int, ...] | None = None
    if strides is not None:
        elements = tuple(evaluate(stride, placement.symbols) for stride in strides)
        if elements != contiguous_strides(shape):
            steps = tuple(stride * itemsize for stride in elements)
    if min(shape, default=0) < 0 or min(steps or (), default=0) < 0:
        raise DeviceError(f"transfer item {item_id} has the shape {shape} and the byte strides {steps}")
    window = Window(placement.address(buffer_id), buffer.dtype.numpy, shape, steps)
    size = evaluate(buffer.size_bytes, placement.symbols)
    if window.nbytes > size:
        raise DeviceError(
            f"transfer item {item_id} needs {window.nbytes} bytes of buffer {buffer_id}, which has {size}"
        )
    return window


def _callback_step(loaded: LoadedProgram, placement: Placement, item_id: int, operation: HostCallback) -> CallbackStep:
    return CallbackStep(
        item_id=item_id,
        name=operation.callback_name,
        evaluate=loaded.callbacks[operation.callback_name].evaluate,
        attributes=tuple(_evaluated(attribute, placement) for attribute in operation.attributes),
        inputs=tuple(placement.window(buffer_id) for buffer_id in operation.input_vars),
        output=placement.window(operation.output_vars[0]),
    )


def _evaluated(attribute: CustomAttr, placement: Placement) -> CustomAttr:
    """The attribute with the sizes of a shape known."""
    if not isinstance(attribute.value, tuple):
        return attribute
    return attribute.model_copy(update={"value": tuple(evaluate(dim, placement.symbols) for dim in attribute.value)})
