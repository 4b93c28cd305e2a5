"""A plan in a block: argument arrays filled in as far as they are known, the rest patched at each call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any

import numpy as np

from ..errors import DeviceError
from .address import Address
from .memory import Block
from .plan import Plan
from .steps import CallbackStep, KernelStep, Step, TransferStep, Window
from .threads import worker_pool

_Slots = list[tuple[Any, int, int]]
"""Places to patch: a pointer array, the position in it, and the offset to add to the base."""


class Frame:
    """Everything that a call of `plan` changes lies here, so a frame serves one call at a time."""

    def __init__(self, plan: Plan, block: Block) -> None:
        self._plan = plan
        self._start = block.address
        self._inputs: list[_Slots] = [[] for _ in plan.inputs]
        self._outputs: list[_Slots] = [[] for _ in plan.outputs]
        self._input_addresses: Sequence[int] = ()
        self._output_addresses: Sequence[int] = ()
        self._keep_alive: list[object] = []
        self.transient_bytes = 0
        self.steps: tuple[Callable[[], object], ...] = tuple(self._prepare(step) for step in plan.steps)

    def aim(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Point the steps at the arrays of a call."""
        self._input_addresses = inputs
        self._output_addresses = outputs
        self.transient_bytes = 0
        for places, base in zip(self._inputs, inputs, strict=True):
            for pointers, slot, offset in places:
                pointers[slot] = base + offset
        for places, base in zip(self._outputs, outputs, strict=True):
            for pointers, slot, offset in places:
                pointers[slot] = base + offset

    def locate(self, address: Address) -> int:
        """The address in memory, for the arrays that the frame is aimed at."""
        match address.base:
            case "input":
                return self._input_addresses[address.index] + address.offset
            case "output":
                return self._output_addresses[address.index] + address.offset
            case "block":
                return self._start + address.offset
            case _:
                return address.offset

    def _prepare(self, step: Step) -> Callable[[], object]:
        match step:
            case KernelStep():
                return self._prepare_kernel(step)
            case TransferStep():
                return partial(self._transfer, step)
            case CallbackStep():
                return partial(self._call_back, step)

    def _prepare_kernel(self, step: KernelStep) -> Callable[[], object]:
        is_private = any(argument.base == "scratch" for argument in step.arguments)
        shared = None if is_private else self._pointers(step, 0)
        values = ctypes.addressof(step.values)
        shares = [
            (ctypes.addressof(shared or self._pointers(step, worker)), values, first, last)
            for worker, (first, last) in enumerate(step.ranges)
        ]
        if len(shares) == 1:
            return partial(step.function, *shares[0])
        return partial(_run_shares, step.function, shares)

    def _pointers(self, step: KernelStep, worker: int) -> ctypes.Array[ctypes.c_void_p]:
        """The pointer array that one worker passes to the kernel."""
        pointers = (ctypes.c_void_p * len(step.arguments))()
        self._keep_alive.append(pointers)
        for slot, argument in enumerate(step.arguments):
            match argument.base:
                case "input":
                    self._inputs[argument.index].append((pointers, slot, argument.offset))
                case "output":
                    self._outputs[argument.index].append((pointers, slot, argument.offset))
                case "scratch":
                    share = self._plan.scratch_start + worker * self._plan.scratch_size
                    pointers[slot] = self._start + share + argument.offset
                case _:
                    pointers[slot] = self.locate(argument)
        return pointers

    def _transfer(self, step: TransferStep) -> None:
        source, target = self.locate(step.source.address), self.locate(step.target.address)
        if step.is_flat:
            ctypes.memmove(target, source, step.source.nbytes)
        else:
            np.copyto(step.target.view(target), step.source.view(source))

    def _call_back(self, step: CallbackStep) -> None:
        result = step.evaluate([self._read_only(window) for window in step.inputs], step.attributes)
        output = step.output
        if result.dtype != output.dtype or result.shape != output.shape:
            raise DeviceError(
                f"the operation {step.name} gave {result.dtype} {result.shape}, not {output.dtype} {output.shape}"
            )
        self.transient_bytes = max(self.transient_bytes, result.nbytes)
        np.copyto(output.view(self.locate(output.address)), result)

    def _read_only(self, window: Window) -> np.ndarray[Any, Any]:
        view = window.view(self.locate(window.address))
        view.flags.writeable = False
        return view


def _run_shares(function: Callable[..., None], shares: Sequence[tuple[int, int, int, int]]) -> None:
    """One share on this thread, the others on the pool; returns when all are done, also when it is interrupted."""
    pool = worker_pool()
    pending: list[Future[None]] = []
    try:
        for share in shares[1:]:
            pending.append(pool.submit(function, *share))
        function(*shares[0])
    finally:
        # The memory that the shares write to is reused after this function, whatever way it ends.
        wait(pending)
