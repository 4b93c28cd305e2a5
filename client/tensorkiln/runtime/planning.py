"""Conversion of schedule items to steps, with their sizes evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import DeviceError
from ..expr import Dim, evaluate
from ..nodes import CustomAttr
from ..schedule import HostCallback, KernelItem, Loop, MemoryTransfer, ScheduleItem, contiguous_strides
from .loops import InnerPlan, InnerPlans, LoopStep, loop_step
from .placement import Placement
from .steps import CallbackStep, Launch, TransferStep, Window

L = TypeVar("L", bound=Launch)
PlanLaunch = Callable[[Placement, ScheduleItem, KernelItem], L | None]
"""Plans the launch of a kernel item; None when there is nothing to launch."""
P = TypeVar("P", bound=InnerPlan)


def plan_steps(
    placement: Placement, plan_launch: PlanLaunch[L], plan_inner: Callable[[int], InnerPlans[P]]
) -> tuple[L | TransferStep | CallbackStep | LoopStep[P], ...]:
    """The steps in order of execution. Synchronization needs no step, since each step ends before the next begins.

    CallBoundsError when a launch size breaks the launch rules.
    """
    outline = placement.layout.outline
    items = outline.program.schedule.items
    steps = [_step(placement, items[item_id], plan_launch, plan_inner) for item_id in outline.phase.items]
    return tuple(step for step in steps if step is not None)


def _step(
    placement: Placement, item: ScheduleItem, plan_launch: PlanLaunch[L], plan_inner: Callable[[int], InnerPlans[P]]
) -> L | TransferStep | CallbackStep | LoopStep[P] | None:
    match item.operation:
        case KernelItem() as operation:
            return plan_launch(placement, item, operation)
        case MemoryTransfer() as operation:
            return _transfer_step(placement, item.item_id, operation)
        case HostCallback() as operation:
            return _callback_step(placement, item.item_id, operation)
        case Loop() as operation:
            return loop_step(placement, item.item_id, operation, plan_inner)
        case _:
            return None


def _transfer_step(placement: Placement, item_id: int, operation: MemoryTransfer) -> TransferStep:
    source = _strided(placement, item_id, operation, operation.src_var, operation.src_strides)
    target = _strided(placement, item_id, operation, operation.dst_var, operation.dst_strides)
    if source.dtype != target.dtype:
        raise DeviceError(f"transfer item {item_id} is from {source.dtype} to {target.dtype}; compile it again")
    return TransferStep(item_id, f"transfer_{operation.transfer_id}", source, target)


def _strided(
    placement: Placement, item_id: int, operation: MemoryTransfer, buffer_id: int, strides: tuple[Dim, ...] | None
) -> Window:
    """The window of a transfer into a buffer; row-major strides become None."""
    buffer = placement.layout.outline.program.buffers[buffer_id]
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


def _callback_step(placement: Placement, item_id: int, operation: HostCallback) -> CallbackStep:
    return CallbackStep(
        item_id=item_id,
        name=operation.callback_name,
        evaluate=placement.layout.outline.callbacks[operation.callback_name].evaluate,
        attributes=tuple(_evaluated(attribute, placement) for attribute in operation.attributes),
        inputs=tuple(placement.window(buffer_id) for buffer_id in operation.input_vars),
        output=placement.window(operation.output_vars[0]),
    )


def _evaluated(attribute: CustomAttr, placement: Placement) -> CustomAttr:
    """The attribute with the dims of a shape evaluated."""
    if not isinstance(attribute.value, tuple):
        return attribute
    return attribute.model_copy(update={"value": tuple(evaluate(dim, placement.symbols) for dim in attribute.value)})
