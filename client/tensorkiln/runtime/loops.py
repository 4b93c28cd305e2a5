"""Loops in a plan: the memory that one needs, and its turns, whatever the device is."""

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
    """What a loop asks of the plans of its programs."""

    @property
    def inputs(self) -> Sequence[_Sized]: ...
    @property
    def outputs(self) -> Sequence[_Given]: ...
    @property
    def block_size(self) -> int: ...


P = TypeVar("P", bound=InnerPlan)

ROOM_ALIGNMENT: Final = 256
"""Bytes: of everything in the room of a loop. No block and no result has to start at a multiple of more."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where in its memory a loop has its parts: what decides, the blocks of the two programs, and every other turn."""

    decision: int
    condition: int
    body: int
    turns: tuple[int, ...]
    size: int


def room_of(condition: int, body: int, carried: Sequence[int]) -> Room:
    """The room of a loop whose programs have blocks of so many bytes, and which carries values of so many bytes."""
    sizes = [round_up(size, ROOM_ALIGNMENT) for size in (1, condition, body, *carried)]
    ends = list(accumulate(sizes, initial=0))
    return Room(ends[0], ends[1], ends[2], tuple(ends[3:-1]), ends[-1])


@dataclass(frozen=True, slots=True)
class LoopStep(Generic[P]):
    """Turns of a body as long as a condition gives true.

    `inputs` and `outputs` are where the values are before and after it; the first `inputs` are carried, of `sizes`
    bytes. `room` is memory of its own from byte `start` of the block on, which the plan sets.
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
    """The step of a loop; `plan_inner` plans a program inside of the program, at the same symbols.

    DeviceError when its programs take or give other bytes than its buffers have, or when what it gives shares bytes
    with what else it gives or takes.
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
    """Run a loop at these addresses, its own memory from the address `room` on.

    Turns give to `outputs` and to the room by turns. `goes_on` runs the condition on addresses, `turn` the body on some
    and to others; `copy(target, source, size)` copies bytes. CallTurnsError when it would take more than `most` turns.
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
    """Bytes of a block whose `own` parts come first, with room for any one of its loops behind them."""
    rooms = [room_of(blocks[loop.condition], blocks[loop.body], carried(loop)).size for loop in loops]
    return round_up(own, ROOM_ALIGNMENT) + max(rooms) if rooms else own


def _strange(operation: Loop, message: str) -> DeviceError:
    return DeviceError(f"loop {operation.loop_id}: {message}; compile the program again")


def _span(address: Address, size: int) -> tuple[tuple[str, int], int, int]:
    return (address.base, address.index), address.offset, address.offset + size


def _overlap(one: tuple[tuple[str, int], int, int], other: tuple[tuple[str, int], int, int]) -> bool:
    return one[0] == other[0] and max(one[1], other[1]) < min(one[2], other[2])
