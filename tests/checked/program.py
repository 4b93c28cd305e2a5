"""One call of a compiled program for the CPU, item by item, in guarded memory."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import numpy as np

from tensorkiln.errors import CallTurnsError
from tensorkiln.runtime.executor import inner_plans
from tensorkiln.runtime.host_launch import HostLaunch, HostStep, host_launches
from tensorkiln.runtime.loaded import LoadedProgram
from tensorkiln.runtime.loops import LoopStep
from tensorkiln.runtime.planning import plan_steps
from tensorkiln.runtime.steps import TransferStep, Window
from tensorkiln.schedule import KernelItem, Loop
from tensorkiln.spec import ProgramSpec
from tensorkiln.spec.checks import accesses

from .fault import raised
from .groups import Range, shares
from .layout import Storages, laid_out
from .memory import Access, Region, Way
from .trap import Fault, trap
from .untouched import Untouched

Array = np.ndarray[Any, Any]

_POOL = ThreadPoolExecutor(64, thread_name_prefix="checked")


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A launch with its item, and the numbers of the storages that it only reads or may write."""

    item: KernelItem
    spec: ProgramSpec
    launch: HostLaunch
    read: frozenset[int]
    written: frozenset[int]


@dataclass(slots=True)
class CheckedCall:
    """A call with valid arrays and symbols; `inputs` are by buffer."""

    loaded: LoadedProgram
    symbols: Mapping[str, int]
    inputs: Mapping[int, Array]
    way: Way
    random: Random
    threads: int
    storages: Storages = field(init=False)

    def run(self) -> tuple[Array, ...]:
        """Run and return the outputs. CheckedFault at the first item with an invalid access."""
        with trap().set():
            return self._run()

    def _run(self) -> tuple[Array, ...]:
        self.storages = laid_out(self.loaded, self.symbols, self.inputs, self.way, self.threads)
        placement, order = self.storages.placement, self.loaded.program.schedule.execution_order
        ended: dict[int, list[Region]] = defaultdict(list)
        for number, storage in enumerate(self.loaded.outlines.whole.storages):
            if storage.kind == "writable":
                ended[storage.last].append(self.storages.shared[number])
        inner = partial(inner_plans, self.loaded, 1, self.symbols)
        steps = {step.item_id: step for step in plan_steps(placement, host_launches(self.loaded.kernels, 1), inner)}
        for position, item_id in enumerate(order):
            if item_id in steps:
                self._step(steps[item_id])
            for region in ended[position]:
                self.storages.memory.forget(region)
        return tuple(self._output(binding.buffer) for binding in self.loaded.program.outputs)

    def _output(self, buffer: int) -> Array:
        self.storages.memory.open(self.storages.region(buffer), Access.READ)
        window = self.storages.placement.window(buffer)
        return window.view(window.address.offset).copy()

    def _step(self, step: HostStep) -> None:
        program = self.loaded.program
        item = program.schedule.items[step.item_id]
        read, written = (
            frozenset(self.loaded.outlines.whole.storage_of[buffer] for buffer in buffers)
            for buffers in accesses(item, program.kernels)
        )
        read -= written
        if isinstance(step, HostLaunch):
            assert isinstance(item.operation, KernelItem), "a launch is that of a kernel item"
            spec = program.kernels[item.operation.kernel_id]
            self._launch(_Kernel(item.operation, spec, step, read, written))
            return
        self._open(read, written)
        if isinstance(step, LoopStep):
            assert isinstance(item.operation, Loop), "a loop is that of a loop item"
            self._loop(item.operation)
        elif isinstance(step, TransferStep):
            np.copyto(_view(step.target), _view(step.source))
        else:
            np.copyto(_view(step.output), step.result([_view(window) for window in step.inputs]))
        self._close(read | written)

    def _loop(self, loop: Loop) -> None:
        """Run a loop; each turn is a separate checked call of its condition and its body."""
        windows = [self.storages.placement.window(buffer) for buffer in (*loop.input_vars, *loop.output_vars)]
        values = [_view(window).copy() for window in windows[: len(loop.input_vars)]]
        turns = 0
        while self._called(loop.condition, values)[0]:
            if turns == loop.most:
                raise CallTurnsError.beyond(loop.most)
            given = self._called(loop.body, values)
            values, turns = [*given, *values[len(given) :]], turns + 1
        for window, value in zip(windows[len(loop.input_vars) :], values, strict=False):
            np.copyto(_view(window), value)

    def _called(self, number: int, values: Sequence[Array]) -> tuple[Array, ...]:
        loaded = self.loaded.inner[number]
        given = {binding.buffer: value for binding, value in zip(loaded.program.inputs, values, strict=True)}
        return CheckedCall(loaded, self.symbols, given, self.way, self.random, self.threads)._run()

    def _open(self, read: frozenset[int], written: frozenset[int]) -> None:
        """Open storages for reading or for writing; all others stay inaccessible."""
        for numbers, access in ((read, Access.READ), (written, Access.WRITE)):
            for number in numbers:
                for region in self._regions(number):
                    self.storages.memory.open(region, access)

    def _close(self, numbers: frozenset[int]) -> None:
        for number in numbers:
            for region in self._regions(number):
                self.storages.memory.open(region, Access.NONE)

    def _regions(self, number: int) -> list[Region]:
        if number in self.storages.shared:
            return [self.storages.shared[number]]
        return [private[number] for private in self.storages.private]

    def _launch(self, kernel: _Kernel) -> None:
        self._open(kernel.read, kernel.written)
        untouched = Untouched.by(kernel.item, kernel.spec, self.storages)
        dealt = shares(kernel.launch.launch.global_size[0], self.threads, self.random)
        if len(dealt) == 1:
            faults = [self._share(kernel, 0, dealt[0])]
        else:
            pending = [_POOL.submit(self._share, kernel, worker, ranges) for worker, ranges in enumerate(dealt)]
            wait(pending)
            faults = [future.result() for future in pending]
        for worker, found in enumerate(faults):
            if found is not None:
                fault, groups = found
                raise raised(kernel.item, fault, self.storages.places(kernel.spec, worker), groups, str(self.way))
        untouched.require(len(dealt), str(self.way))
        self._close(kernel.read | kernel.written)

    def _share(self, kernel: _Kernel, worker: int, ranges: Sequence[Range]) -> tuple[Fault, Range] | None:
        """Run the ranges of a worker in order, poisoning scratch before each; returns the first fault and its range."""
        spec, storages = kernel.spec, self.storages
        addresses = [storages.address(buffer, worker) for buffer in spec.buffers]
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        scratch = [storages.private[worker][number] for number in kernel.written if number in storages.private[worker]]
        entry = self.loaded.kernels[kernel.item.kernel_id].code.address_of(spec.entry or spec.name)
        for first, last in ranges:
            for region in scratch:
                storages.memory.poison(region)
            buffers, values = ctypes.addressof(pointers), ctypes.addressof(kernel.launch.values)
            fault = trap().call(worker, entry, buffers, values, first, last)
            if fault is not None:
                return fault, (first, last)
        return None


def _view(window: Window) -> Array:
    return window.view(window.address.offset)
