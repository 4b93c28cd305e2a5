"""Loops in a plan: their memory and their turns, for any device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Generic, Protocol, TypeVar

from ..errors import CallTurnsError, DeviceError
from ..schedule import Loop
from .address import Address
from .memory import round_up
from .placement import Placement


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


class _Given(_Sized, Protocol):
    @property
    def size(self) -> int: ...


class InnerPlan(Protocol):
    """The parts of an inner program's plan that a loop uses."""

    @property
    def inputs(self) -> Sequence[_Sized]: ...
    @property
    def outputs(self) -> Sequence[_Given]: ...
    @property
    def block_size(self) -> int: ...


P = TypeVar("P", bound=InnerPlan)

ROOM_ALIGNMENT: Final = 256
"""Alignment in bytes of each part of a loop's room; no block or result needs more."""


@dataclass(frozen=True, slots=True)
class Room:
    """Offsets in a loop's memory: the condition's result, the blocks of the two programs, and the carried values.

    `turns` are for the carried values of every other turn; `size` is the total in bytes.
    """

    decision: int
    condition: int
    body: int
    turns: tuple[int, ...]
    size: int


def room_of(condition: int, body: int, carried: Sequence[int]) -> Room:
    """The room of a loop, from the bytes of its programs' blocks and of each carried value."""
    sizes = [round_up(size, ROOM_ALIGNMENT) for size in (1, condition, body, *carried)]
    ends = list(accumulate(sizes, initial=0))
    return Room(ends[0], ends[1], ends[2], tuple(ends[3:-1]), ends[-1])


@dataclass(frozen=True, slots=True)
class LoopStep(Generic[P]):
    """Runs the body as long as the condition gives true.

    `inputs` and `outputs` are the addresses of the values before and after the loop; the first `inputs` are carried,
    with `sizes` in bytes. `room` starts at byte `start` of the block, which the plan sets.
    """

    item_id: int
    name: str
    condition: P
    body: P
    inputs: tuple[Address, ...]
    outputs: tuple[Address, ...]
    sizes: tuple[int, ...]
    most: int
    room: Room
    start: int = 0


def loop_step(placement: Placement, item_id: int, operation: Loop, plan_inner: Callable[[int], P]) -> LoopStep[P]:
    """The step of a loop; `plan_inner` plans an inner program at the same symbols.

    DeviceError when the sizes of its programs' inputs or outputs differ from those of its buffers, or when an output
    shares bytes with another output or with an input.
    """
    condition, body = plan_inner(operation.condition), plan_inner(operation.body)
    inputs = [placement.window(buffer_id) for buffer_id in operation.input_vars]
    outputs = [placement.window(buffer_id) for buffer_id in operation.output_vars]
    taken, given = [window.nbytes for window in inputs], [window.nbytes for window in outputs]
    for what, plan in (("condition", condition), ("body", body)):
        if [spec.nbytes for spec in plan.inputs] != taken:
            raise _strange(operation, f"its {what} takes other bytes than its buffers have")
    made = [(output.nbytes, output.size) for output in body.outputs]
    if made != [(size, size) for size in given] or given != taken[: len(given)]:
        raise _strange(operation, "its body gives other bytes than it takes")
    spans = [_span(window.address, window.nbytes) for window in (*outputs, *inputs)]
    for number, span in enumerate(spans[: len(outputs)]):
        if any(_overlap(span, other) for other in spans[number + 1 :]):
            raise _strange(operation, "what it gives shares bytes with what else it has")
    return LoopStep(
        item_id=item_id,
        name=f"loop_{operation.loop_id}",
        condition=condition,
        body=body,
        inputs=tuple(window.address for window in inputs),
        outputs=tuple(window.address for window in outputs),
        sizes=tuple(given),
        most=operation.most,
        room=room_of(condition.block_size, body.block_size, given),
    )


def run_turns(
    step: LoopStep[Any],
    inputs: Sequence[int],
    outputs: Sequence[int],
    room: int,
    goes_on: Callable[[Sequence[int]], bool],
    turn: Callable[[Sequence[int], Sequence[int]], None],
    copy: Callable[[int, int, int], object],
) -> None:
    """Run a loop on these addresses; its own memory starts at the address `room`.

    Turns write alternately to `outputs` and to the room. `goes_on(values)` runs the condition, `turn(values, results)`
    the body, on addresses; `copy(target, source, size)` copies bytes. CallTurnsError for more than `most` turns.
    """
    carried = len(outputs)
    present = list(inputs)
    places = (list(outputs), [room + offset for offset in step.room.turns])
    turns = 0
    while goes_on(present):
        if turns == step.most:
            raise CallTurnsError.beyond(step.most)
        target = places[turns % 2]
        turn(present, target)
        present[:carried] = target
        turns += 1
    for target, source, size in zip(outputs, present, step.sizes, strict=False):
        if target != source:
            copy(target, source, size)


def inner_loops(items: Sequence[Any]) -> list[Loop]:
    """The loops among operations."""
    return [operation for operation in items if isinstance(operation, Loop)]


def block_bytes(
    own: int, loops: Sequence[Loop], blocks: Mapping[int, int], carried: Callable[[Loop], Sequence[int]]
) -> int:
    """Bytes of a block: `own` bytes, then room for the largest of its loops."""
    rooms = [room_of(blocks[loop.condition], blocks[loop.body], carried(loop)).size for loop in loops]
    return round_up(own, ROOM_ALIGNMENT) + max(rooms) if rooms else own


def _strange(operation: Loop, message: str) -> DeviceError:
    return DeviceError(f"loop {operation.loop_id}: {message}; compile the program again")


def _span(address: Address, size: int) -> tuple[tuple[str, int], int, int]:
    return (address.base, address.index), address.offset, address.offset + size


def _overlap(one: tuple[tuple[str, int], int, int], other: tuple[tuple[str, int], int, int]) -> bool:
    return one[0] == other[0] and max(one[1], other[1]) < min(one[2], other[2])
