"""A plan in a block of a device's memory, ready to run on any stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..memory import Array
from ..plan import Plan
from ..slots import Slots
from ..steps import CallbackStep, TransferStep, Window
from .context import Context
from .driver import Arguments
from .launches import DeviceLaunch, DeviceStep
from .memory import DeviceBlock


class Frame:
    """Everything that a call of `plan` changes lies here, so a frame serves one call at a time.

    Each of `steps` takes the handle of a stream and puts its work there.
    """

    def __init__(self, plan: Plan[DeviceLaunch], block: DeviceBlock, context: Context) -> None:
        self.slots = Slots(plan, block.address)
        self.steps: tuple[Callable[[int], object], ...] = tuple(
            _prepared(step, self.slots, context) for step in plan.steps
        )


def _prepared(step: DeviceStep, slots: Slots, context: Context) -> Callable[[int], object]:
    match step:
        case DeviceLaunch():
            return _prepared_launch(step, slots, context)
        case TransferStep():
            return partial(_transfer if step.is_flat else _rearrange, step, slots, context)
        case CallbackStep():
            return partial(_call_back, step, slots, context)


def _prepared_launch(step: DeviceLaunch, slots: Slots, context: Context) -> Callable[[int], object]:
    arguments = Arguments((*(0 for _ in step.arguments), *step.values))
    slots.fill(arguments.values, step.arguments)
    grid, block = step.launch.global_size, step.launch.local_size or (1, 1, 1)
    return partial(context.driver.launch, step.function, grid, block, step.shared_bytes, arguments)


def _transfer(step: TransferStep, slots: Slots, context: Context, stream: int) -> None:
    if size := step.source.nbytes:
        context.driver.copy(slots.locate(step.target.address), slots.locate(step.source.address), size, stream)


def _rearrange(step: TransferStep, slots: Slots, context: Context, stream: int) -> None:
    """A copy between strides, by way of the host; what lies between the elements of the target stays as it is."""
    source, target = _fetched((step.source, step.target), slots, context, stream)
    np.copyto(target[1], source[1])
    _send(slots.locate(step.target.address), target[0], context)


def _call_back(step: CallbackStep, slots: Slots, context: Context, stream: int) -> None:
    arrays = [array for _, array in _fetched(step.inputs, slots, context, stream)]
    for array in arrays:
        array.flags.writeable = False
    _send(slots.locate(step.output.address), step.result(arrays), context)


def _fetched(windows: Sequence[Window], slots: Slots, context: Context, stream: int) -> list[tuple[Array, Array]]:
    """For each window the bytes that it spans, and itself as an array in them, once the stream is idle."""
    context.driver.synchronize(stream)
    fetched: list[tuple[Array, Array]] = []
    for window in windows:
        content: np.ndarray[Any, Any] = np.empty(window.nbytes, np.uint8)
        context.fetch(content, slots.locate(window.address))
        fetched.append((content, np.ndarray(window.shape, window.dtype, content, 0, window.strides)))
    context.finish_copies()
    return fetched


def _send(address: int, array: Array, context: Context) -> None:
    held = context.send(address, array)
    context.finish_copies()
    del held
