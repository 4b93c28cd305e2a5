"""A plan: a program at one binding of its symbols, with all sizes, offsets and launches known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np

from .address import Address
from .arguments import InputSpec
from .layout import Layout
from .loops import ROOM_ALIGNMENT, InnerPlans, LoopStep
from .memory import round_up
from .phases import Phase
from .placement import Placement
from .planning import L, PlanLaunch, plan_steps
from .steps import CallbackStep, Launch, TransferStep


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """A result. Kernels write a fresh result in place; any other is copied from `source`.

    `size` is the number of bytes to allocate.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int
    source: Address
    is_fresh: bool

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Plan(Generic[L]):
    """`block_size` bytes hold the arena, the scratch of each worker and room for a loop.

    `inputs` are the free inputs, in call order.
    """

    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    steps: tuple[L | TransferStep | CallbackStep | LoopStep[Plan[L]], ...]
    block_size: int
    scratch_start: int
    scratch_size: int
    in_place: tuple[int, ...] = ()

    @property
    def planned_bytes(self) -> int:
        """Bytes that a call allocates: arena, scratch, results, and the largest result of a host callback."""
        return self.block_size + sum(output.size for output in self.outputs) + self.callback_bytes

    @property
    def callback_bytes(self) -> int:
        """Bytes of the largest result of a host callback."""
        own = [step.output.nbytes for step in self.steps if isinstance(step, CallbackStep)]
        loops = [step for step in self.steps if isinstance(step, LoopStep)]
        # Nothing that is prepared calls back.
        return max([*own, *(plan.callback_bytes for loop in loops for plan in (loop.condition, loop.body))], default=0)


def make_plan(
    layout: Layout,
    inputs: tuple[InputSpec, ...],
    fixed: Mapping[int, int],
    plan_launch: PlanLaunch[L],
    plan_inner: Callable[[int], InnerPlans[Plan[L]]],
) -> Plan[L]:
    """The plan of a layout; `fixed` are the addresses of constants and fixed inputs by buffer id.

    `plan_inner` plans an inner program by its number.
    """
    free = {spec.var: position for position, spec in enumerate(inputs)}
    placement = Placement(layout, fixed, free)
    steps = plan_steps(placement, plan_launch, plan_inner)
    workers = max((step.workers for step in steps if isinstance(step, Launch)), default=1)
    own = layout.arena.size + workers * layout.scratch.size
    rooms = [step.room.size for step in steps if isinstance(step, LoopStep)]
    start = round_up(own, ROOM_ALIGNMENT)
    return Plan(
        inputs=inputs,
        outputs=_outputs(placement),
        # Loops run one at a time and share the room.
        steps=tuple(replace(step, start=start) if isinstance(step, LoopStep) else step for step in steps),
        block_size=start + max(rooms) if rooms else own,
        scratch_start=layout.arena.size,
        scratch_size=layout.scratch.size,
        in_place=layout.outline.program.in_place,
    )


def named_output(phase: Phase, position: int) -> str:
    """The result at `position`, as the subject and verb of a `no_room` message."""
    return f"output {position} (var {phase.outputs[position].var}) takes"


def _outputs(placement: Placement) -> tuple[OutputSpec, ...]:
    specs: list[OutputSpec] = []
    for position, binding in enumerate(placement.layout.outline.phase.outputs):
        window = placement.window(binding.buffer)
        size, is_fresh = placement.layout.result_bytes(position), placement.layout.is_fresh(position)
        specs.append(OutputSpec(window.dtype, window.shape, size, window.address, is_fresh))
    return tuple(specs)
