"""A plan bound to host memory, ready to run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

import numpy as np

from .crew import Crew, Task, crew_of
from .host_launch import HostLaunch, HostStep
from .loops import Copy, LoopStep
from .memory import no_room
from .plan import Plan
from .slots import Slots
from .steps import CallbackStep, TransferStep, Window
from .turns import KERNEL, TASKS, HostLoop, Step, copy_step


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
        launches = [step for step in plan.steps if isinstance(step, HostLaunch)]
        workers = max((step.workers for step in launches), default=1)
        self.crew: Final = crew_of(workers) if workers > 1 else None
        self._tasks = (Task * len(launches))()
        self._prepared = 0
        self._plan_steps = plan.steps
        self._kernels: list[Step] = []
        self._loops: list[tuple[LoopStep[Plan[HostLaunch]], HostLoop]] = []
        self._copies: list[Copy] = []
        self.steps: tuple[Callable[[], object], ...] = tuple(self._prepare(step) for step in plan.steps)
        self._whole = self.steps if self.crew is None else tuple(self._joined(plan.steps, self.crew))

    def _joined(self, steps: Sequence[HostStep], crew: Crew) -> Iterator[Callable[[], object]]:
        """The steps, with successive launches run by one call."""
        begun = 0
        numbered = zip(steps, self.steps, strict=True)
        for is_launch, group in groupby(numbered, lambda step: isinstance(step[0], HostLaunch)):
            prepared = [each for _, each in group]
            if is_launch:
                yield partial(crew.run, ctypes.addressof(self._tasks[begun]), len(prepared))
                begun += len(prepared)
            else:
                yield from prepared

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

    def aim(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """Set the addresses of the arrays for the next runs, also those of loops."""
        self.slots.aim(inputs, outputs)
        located = self.slots.locate
        self._copies = [
            (address, source, output.size)
            for output, address in zip(self._outputs, outputs, strict=True)
            if not output.is_fresh and (source := located(output.source)) != address and output.size
        ]
        for step, loop in self._loops:
            loop.aim([located(each) for each in step.inputs], [located(each) for each in step.outputs])

    def run(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """Run every step on arrays at these addresses."""
        self.transient_bytes = 0
        self.aim(inputs, outputs)
        self.run_steps()
        self.give()

    def run_steps(self) -> None:
        """Run every step on the arrays that the frame is aimed at."""
        for step in self._whole:
            step()

    def give(self) -> None:
        """Copy results that the steps did not write in place to their addresses."""
        for each in self._copies:
            ctypes.memmove(*each)

    def native(self) -> list[Step] | None:
        """The steps of the frame as it is aimed; None if a step runs Python code."""
        made: list[Step | None] = []
        loops = (loop for _, loop in self._loops)
        launches = iter(self._kernels)
        for step in self._plan_steps:
            match step:
                case HostLaunch():
                    made.append(next(launches))
                case LoopStep():
                    made.append(next(loops).native())
                case _:
                    return None
        known = [step for step in made if step is not None]
        return None if len(known) < len(made) else [*known, *map(copy_step, self._copies)]

    def _prepare_loop(self, step: LoopStep[Plan[HostLaunch]]) -> Callable[[], object]:
        room = self._start + step.start
        conditions, bodies = (
            [Frame(plan, room + offset) for _ in range(2)]
            for plan, offset in ((step.condition, step.room.condition), (step.body, step.room.body))
        )
        # It has ended before the first turn, so its block may be that of the body.
        prepare = None if step.prepare is None else Frame(step.prepare, room + step.room.body)
        loop = HostLoop(step, room, conditions, bodies, prepare)
        self._loops.append((step, loop))

        def run() -> None:
            for program in (*conditions, *bodies, prepare):
                if program is not None and program.crew is not None:
                    program.crew.regain()
            loop.run()
            self.transient_bytes = max(self.transient_bytes, loop.transient_bytes)

        return run

    def _prepare_kernel(self, step: HostLaunch) -> Callable[[], object]:
        values, edges = ctypes.addressof(step.values), self._kept((ctypes.c_int64 * len(step.edges))(*step.edges))
        is_private = any(argument.base == "scratch" for argument in step.arguments)
        count = len(step.arguments)
        pointers = self._kept(((ctypes.c_void_p * count) * (step.workers if is_private else 1))())
        for worker, own in enumerate(pointers):
            self.slots.fill(own, step.arguments, worker)
        if self.crew is None:
            start, groups = ctypes.addressof(pointers), step.edges[-1]
            self._kernels.append(Step(KERNEL, step.kernel.address, start, values, groups))
            return partial(step.kernel.function, start, values, 0, groups)
        task, place = self._tasks[self._prepared], ctypes.addressof(self._tasks[self._prepared])
        self._prepared += 1
        task.function, task.pointers, task.values = step.kernel.address, ctypes.addressof(pointers), values
        task.stride = ctypes.sizeof(ctypes.c_void_p) * count if is_private else 0
        task.workers, task.chunk, task.edges = step.workers, step.chunk, ctypes.addressof(edges)
        self._kernels.append(
            Step(TASKS, self.crew.code, self.crew.address, place, 1)
            if step.workers > 1
            else Step(KERNEL, task.function, task.pointers, values, step.edges[-1])
        )
        return partial(self.crew.run, place, 1)

    def _kept(self, made: Any) -> Any:
        self._keep_alive.append(made)
        return made

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
