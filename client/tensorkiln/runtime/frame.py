"""A plan bound to host memory, ready to run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, Final

import numpy as np

from .host_launch import HostLaunch, HostStep
from .loops import LoopStep, run_turns
from .memory import no_room
from .plan import Plan
from .slots import Slots
from .steps import CallbackStep, TransferStep, Window
from .threads import worker_pool


class Frame:
    """All state that a call of `plan` changes, so a frame serves one call at a time.

    Its memory starts at the address `start`.
    """

    def __init__(self, plan: Plan[HostLaunch], start: int) -> None:
        self._start = start
        self._outputs = plan.outputs
        self.slots: Final = Slots(plan, start)
        self._keep_alive: list[object] = []
        self.transient_bytes = 0
        self.steps: tuple[Callable[[], object], ...] = tuple(self._prepare(step) for step in plan.steps)

    def _prepare(self, step: HostStep) -> Callable[[], object]:
        match step:
            case HostLaunch():
                return self._prepare_kernel(step)
            case TransferStep():
                return partial(self._transfer, step)
            case CallbackStep():
                return partial(self._call_back, step)
            case LoopStep():
                return self._prepare_loop(step)

    def run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run every step on arrays at these addresses."""
        self.transient_bytes = 0
        self.slots.aim(inputs, outputs)
        for step in self.steps:
            step()
        self.give(outputs)

    def give(self, addresses: Sequence[int]) -> None:
        """Copy results that the steps did not write in place to their addresses."""
        for output, address in zip(self._outputs, addresses, strict=True):
            if not output.is_fresh:
                ctypes.memmove(address, self.slots.locate(output.source), output.size)

    def _prepare_loop(self, step: LoopStep[Plan[HostLaunch]]) -> Callable[[], object]:
        room = self._start + step.start
        condition = Frame(step.condition, room + step.room.condition)
        body = Frame(step.body, room + step.room.body)
        decision = ctypes.c_uint8.from_address(room + step.room.decision)

        def goes_on(values: Sequence[int]) -> bool:
            condition.run(values, [room + step.room.decision])
            self.transient_bytes = max(self.transient_bytes, condition.transient_bytes)
            return decision.value != 0

        def turn(values: Sequence[int], results: Sequence[int]) -> None:
            body.run(values, results)
            self.transient_bytes = max(self.transient_bytes, body.transient_bytes)

        def run() -> None:
            inputs, outputs = ([self.slots.locate(each) for each in places] for places in (step.inputs, step.outputs))
            run_turns(step, inputs, outputs, room, goes_on, turn, ctypes.memmove)

        return run

    def _prepare_kernel(self, step: HostLaunch) -> Callable[[], object]:
        is_private = any(argument.base == "scratch" for argument in step.arguments)
        shared = None if is_private else self._pointers(step, 0)
        values = ctypes.addressof(step.values)
        shares = [
            (ctypes.addressof(shared or self._pointers(step, worker)), values, first, last)
            for worker, (first, last) in enumerate(step.ranges)
        ]
        if len(shares) == 1:
            return partial(step.function, *shares[0])
        return partial(run_shares, step.function, shares)

    def _pointers(self, step: HostLaunch, worker: int) -> ctypes.Array[ctypes.c_void_p]:
        """The pointer array that one worker passes to the kernel."""
        pointers = (ctypes.c_void_p * len(step.arguments))()
        self._keep_alive.append(pointers)
        self.slots.fill(pointers, step.arguments, worker)
        return pointers

    def _transfer(self, step: TransferStep) -> None:
        source, target = self.slots.locate(step.source.address), self.slots.locate(step.target.address)
        if step.is_flat:
            ctypes.memmove(target, source, step.source.nbytes)
        else:
            np.copyto(step.target.view(target), step.source.view(source))

    def _call_back(self, step: CallbackStep) -> None:
        try:
            result = step.result([self._read_only(window) for window in step.inputs])
        except MemoryError as error:
            raise no_room(f"the operation {step.name} takes memory for a result of", step.output.nbytes) from error
        self.transient_bytes = max(self.transient_bytes, result.nbytes)
        np.copyto(step.output.view(self.slots.locate(step.output.address)), result)

    def _read_only(self, window: Window) -> np.ndarray[Any, Any]:
        view = window.view(self.slots.locate(window.address))
        view.flags.writeable = False
        return view


def run_shares(function: Callable[..., None], shares: Sequence[tuple[int, int, int, int]]) -> None:
    """Run one share on this thread and the others on the pool. Waits for all, even when interrupted."""
    pool = worker_pool()
    pending: list[Future[None]] = []
    try:
        for share in shares[1:]:
            pending.append(pool.submit(function, *share))
        function(*shares[0])
    finally:
        # The caller reuses the memory that the shares write to, even after an exception.
        wait(pending)
