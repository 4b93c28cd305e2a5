"""A plan bound to device memory, ready to run on any stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..loops import LoopStep, Turn, run_turns, turns_of
from ..memory import Array
from ..plan import Plan
from ..slots import Slots
from ..steps import CallbackStep, TransferStep, Window
from .context import Context
from .driver import Arguments
from .launches import DeviceLaunch, DeviceStep


class Frame:
    """All state that a call of `plan` changes, so a frame serves one call at a time.

    Its memory starts at the address `start`. Each of `steps` takes the handle of a stream and enqueues its work there.
    """

    def __init__(self, plan: Plan[DeviceLaunch], start: int, context: Context) -> None:
        self._outputs = plan.outputs
        self._context = context
        self.slots = Slots(plan, start)
        self.steps: tuple[Callable[[int], object], ...] = tuple(
            _prepared(step, self.slots, context, start) for step in plan.steps
        )

    def run(self, inputs: tuple[int, ...], outputs: tuple[int, ...], stream: int) -> None:
        """Enqueue every step on the stream, for arrays at these addresses."""
        self.slots.aim(inputs, outputs)
        for step in self.steps:
            step(stream)
        self.give(outputs, stream)

    def give(self, addresses: Sequence[int], stream: int) -> None:
        """Enqueue copies of the results that the steps do not write in place."""
        for output, address in zip(self._outputs, addresses, strict=True):
            source = self.slots.locate(output.source)
            if not output.is_fresh and output.size and source != address:
                self._context.driver.copy(address, source, output.size, stream)


def _prepared(step: DeviceStep, slots: Slots, context: Context, start: int) -> Callable[[int], object]:
    match step:
        case LoopStep():
            return _prepared_loop(step, slots, context, start + step.start)
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


def _prepared_loop(
    step: LoopStep[Plan[DeviceLaunch]], slots: Slots, context: Context, room: int
) -> Callable[[int], object]:
    # One for each of the two places that turns have: its addresses are written once.
    conditions = [Frame(step.condition, room + step.room.condition, context) for _ in range(2)]
    bodies = [Frame(step.body, room + step.room.body, context) for _ in range(2)]
    decided: np.ndarray[Any, Any] = np.empty(1, np.uint8)
    place = room + step.room.decision

    def run(stream: int) -> None:
        inputs, outputs = ([slots.locate(each) for each in places] for places in (step.inputs, step.outputs))
        turns = turns_of(step, inputs, outputs, room)

        def goes_on(number: int) -> bool:
            conditions[number].run(turns.places[number].values, (place,), stream)
            # The host evaluates the decision, so it must wait for the condition.
            context.driver.synchronize(stream)
            context.fetch(decided, place)
            context.finish_copies()
            return decided[0] != 0

        def turn(number: int) -> None:
            at: Turn = turns.places[number]
            bodies[number].run(at.values, at.results, stream)

        def copy(target: int, source: int, size: int) -> None:
            context.driver.copy(target, source, size, stream)

        run_turns(step, turns, goes_on, turn, copy)

    return run


def _transfer(step: TransferStep, slots: Slots, context: Context, stream: int) -> None:
    if size := step.source.nbytes:
        context.driver.copy(slots.locate(step.target.address), slots.locate(step.source.address), size, stream)


def _rearrange(step: TransferStep, slots: Slots, context: Context, stream: int) -> None:
    """Copy between strided windows, through the host; bytes between the target's elements are preserved."""
    source, target = _fetched((step.source, step.target), slots, context, stream)
    np.copyto(target[1], source[1])
    _send(slots.locate(step.target.address), target[0], context)


def _call_back(step: CallbackStep, slots: Slots, context: Context, stream: int) -> None:
    arrays = [array for _, array in _fetched(step.inputs, slots, context, stream)]
    for array in arrays:
        array.flags.writeable = False
    _send(slots.locate(step.output.address), step.result(arrays), context)


def _fetched(windows: Sequence[Window], slots: Slots, context: Context, stream: int) -> list[tuple[Array, Array]]:
    """Wait for the stream; for each window return a host copy of the bytes it spans, and the window over that copy."""
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
