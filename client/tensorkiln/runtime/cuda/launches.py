"""Launches on a GPU, checked against the kernel's requirements and the device's limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...errors import CallBoundsError, DeviceError
from ...expr import evaluate
from ...schedule import KernelItem, ScheduleItem
from ...spec import ProgramSpec
from ..address import Address, Base
from ..loops import LoopStep
from ..placement import Placement
from ..plan import Plan
from ..steps import CallbackStep, Launch, TransferStep
from .driver import Driver, Function
from .limits import check_launch, needs_permission
from .loaded import Session


@dataclass(frozen=True, slots=True)
class DeviceLaunch(Launch):
    """A launch with `shared_bytes` of dynamic shared memory; `alignments` are those required of the `arguments`."""

    function: Function
    shared_bytes: int
    arguments: tuple[Address, ...]
    alignments: tuple[int, ...]
    values: tuple[int, ...]


DeviceStep = DeviceLaunch | TransferStep | CallbackStep | LoopStep[Plan[DeviceLaunch]]


def device_launches(session: Session) -> Callable[[Placement, ScheduleItem, KernelItem], DeviceLaunch | None]:
    """A function that plans launches in a session; None for an empty grid.

    CallBoundsError when a size breaks the launch rules or a limit of the device, DeviceError when the program violates
    its kernel's alignment or overlap requirements.
    """

    def plan(placement: Placement, item: ScheduleItem, operation: KernelItem) -> DeviceLaunch | None:
        spec = placement.layout.outline.program.kernels[operation.kernel_id]
        if any(evaluate(size, placement.symbols) == 0 for size in spec.global_size):
            return None
        launch = spec.launch_dims(placement.symbols)
        function, driver = session.functions[operation.kernel_id], session.context.driver
        shared_bytes = evaluate(spec.dynamic_shared_bytes, placement.symbols)
        if shared_bytes < 0:
            raise CallBoundsError(f"kernel {spec.name} has {shared_bytes} bytes of dynamic shared memory")
        check_launch(spec.name, launch, shared_bytes, function, driver.properties)
        _allow(driver, function, shared_bytes)
        made = DeviceLaunch(
            item_id=item.item_id,
            name=operation.kernel_name,
            launch=launch,
            function=function,
            shared_bytes=shared_bytes,
            arguments=tuple(placement.address(buffer_id) for buffer_id in spec.buffers),
            alignments=spec.alignments or _element_sizes(placement, spec),
            values=tuple(placement.symbols[name] for name in spec.var_names),
        )
        _require_alignment(spec, made)
        if spec.no_overlap:
            _require_no_overlap(spec, made, placement)
        return made

    return plan


def demanded_alignments(plan: Plan[DeviceLaunch]) -> tuple[int, ...]:
    """The alignment in bytes that each free input must have."""
    return _demands(plan, "input", len(plan.inputs))


def require_aligned_loops(plan: Plan[DeviceLaunch]) -> None:
    """DeviceError when an input or output of a loop lacks the alignment that its kernels need."""
    for step in plan.steps:
        if not isinstance(step, LoopStep):
            continue
        for argument, alignment in _of_loop(step):
            if argument.offset % alignment:
                raise DeviceError(
                    f"{step.name} needs a value at a multiple of {alignment} bytes, and it is at byte "
                    f"{argument.offset} of its storage; compile the program again"
                )


def _demands(plan: Plan[DeviceLaunch], base: Base, count: int) -> tuple[int, ...]:
    """The alignment in bytes that the plan needs of each of the `count` inputs or outputs of a call."""
    demands = [1] * count
    for step in plan.steps:
        if isinstance(step, DeviceLaunch):
            found = zip(step.arguments, step.alignments, strict=True)
        elif isinstance(step, LoopStep):
            found = _of_loop(step)
        else:
            continue
        for argument, alignment in found:
            if argument.base == base:
                demands[argument.index] = max(demands[argument.index], alignment)
    return tuple(demands)


def _of_loop(step: LoopStep[Plan[DeviceLaunch]]) -> Iterator[tuple[Address, int]]:
    """The addresses of a loop's inputs and outputs, each with the alignment that its programs need."""
    taken = [_demands(plan, "input", len(step.inputs)) for plan in (step.condition, step.body)]
    yield from zip(step.inputs, map(max, *taken), strict=True)
    given = _demands(step.body, "output", len(step.outputs))
    # A value that the body replaces in place is at the address of the output from the first turn on.
    needed = (max(pair) for pair in zip(given, map(max, *taken), strict=False))
    yield from zip(step.outputs, needed, strict=True)


def _allow(driver: Driver, function: Function, shared_bytes: int) -> None:
    if needs_permission(function, shared_bytes):
        with driver.scope():
            # The device's maximum, not `shared_bytes`: other threads may launch the kernel with other sizes.
            driver.allow_shared(function, driver.properties.max_shared_bytes - function.static_shared_bytes)


def _element_sizes(placement: Placement, spec: ProgramSpec) -> tuple[int, ...]:
    buffers = placement.layout.outline.program.buffers
    return tuple(max(buffers[buffer_id].dtype.itemsize, 1) for buffer_id in spec.buffers)


def _require_alignment(spec: ProgramSpec, launch: DeviceLaunch) -> None:
    """Check offsets only: blocks, results and copied inputs start at multiples of more than any kernel needs."""
    for slot, (argument, alignment) in enumerate(zip(launch.arguments, launch.alignments, strict=True)):
        if argument.offset % alignment:
            raise DeviceError(
                f"kernel {spec.name} needs buffer {spec.buffers[slot]} at a multiple of {alignment} bytes, and it is "
                f"at byte {argument.offset} of its storage; compile the program again"
            )


def _require_no_overlap(spec: ProgramSpec, launch: DeviceLaunch, placement: Placement) -> None:
    spans = list(_spans(spec, launch, placement))
    for out in spec.outs:
        home, start, end = spans[out]
        for slot, (other_home, other_start, other_end) in enumerate(spans):
            if slot != out and home == other_home and max(start, other_start) < min(end, other_end):
                raise DeviceError(
                    f"kernel {spec.name} must write buffer {spec.buffers[out]} apart from its other arguments, and "
                    f"buffer {spec.buffers[slot]} shares bytes with it; compile the program again"
                )


def _spans(spec: ProgramSpec, launch: DeviceLaunch, placement: Placement) -> Iterator[tuple[tuple[str, int], int, int]]:
    """For each slot its base, and its first byte and the byte after its last, counted from the base."""
    buffers = placement.layout.outline.program.buffers
    for argument, buffer_id in zip(launch.arguments, spec.buffers, strict=True):
        size = evaluate(buffers[buffer_id].size_bytes, placement.symbols)
        yield (argument.base, argument.index), argument.offset, argument.offset + size
