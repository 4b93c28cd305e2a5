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
    @property
    def in_place(self) -> Sequence[int]: ...


P = TypeVar("P", bound=InnerPlan)


@dataclass(frozen=True, slots=True)
class InnerPlans(Generic[P]):
    """The plans of an inner program: one for each turn and, in some bodies, one that runs once before all turns.

    `prepare` takes the inputs at the positions `needed`, which the loop does not change. Its outputs are inputs of
    `turn`, after those of the program.
    """

    turn: P
    prepare: P | None = None
    needed: tuple[int, ...] = ()


Copy = tuple[int, int, int]
"""The address to copy to, the one to copy from, and the number of bytes."""

ROOM_ALIGNMENT: Final = 256
"""Alignment in bytes of each part of a loop's room; no block or result needs more."""


@dataclass(frozen=True, slots=True)
class Room:
    """Offsets in a loop's memory: the condition's result, the blocks of the two programs, and values.

    `turns` are for the carried values before the first turn and then every other one, without bytes for those that the
    body replaces in place; `kept` are for prepared values; `size` is the total in bytes.
    """

    decision: int
    condition: int
    body: int
    turns: tuple[int, ...]
    kept: tuple[int, ...]
    size: int


def room_of(condition: int, body: int, carried: Sequence[int], kept: Sequence[int] = ()) -> Room:
    """The room of a loop, from the bytes of its programs' blocks, and of each carried and each prepared value."""
    sizes = [round_up(size, ROOM_ALIGNMENT) for size in (1, condition, body, *carried, *kept)]
    ends = list(accumulate(sizes, initial=0))
    first = 3 + len(carried)
    return Room(ends[0], ends[1], ends[2], tuple(ends[3:first]), tuple(ends[first:-1]), ends[-1])


@dataclass(frozen=True, slots=True)
class LoopStep(Generic[P]):
    """Runs the body as long as the condition gives true; `prepare` runs once before, as in `InnerPlans`.

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
    prepare: P | None = None
    needed: tuple[int, ...] = ()


def loop_step(
    placement: Placement, item_id: int, operation: Loop, plan_inner: Callable[[int], InnerPlans[P]]
) -> LoopStep[P]:
    """The step of a loop; `plan_inner` plans an inner program at the same symbols.

    DeviceError when the sizes of its programs' inputs or outputs differ from those of its buffers, or when an output
    shares bytes with another output or with an input, except the whole of the input that it replaces.
    """
    plans = plan_inner(operation.body)
    condition, body, prepare = plan_inner(operation.condition).turn, plans.turn, plans.prepare
    inputs = [placement.window(buffer_id) for buffer_id in operation.input_vars]
    outputs = [placement.window(buffer_id) for buffer_id in operation.output_vars]
    taken, given = [window.nbytes for window in inputs], [window.nbytes for window in outputs]
    kept = [] if prepare is None else [output.size for output in prepare.outputs]
    for what, plan, sizes in (("condition", condition, taken), ("body", body, [*taken, *kept])):
        if [spec.nbytes for spec in plan.inputs] != sizes:
            raise _strange(operation, f"its {what} takes other bytes than its buffers have")
    made = [(output.nbytes, output.size) for output in body.outputs]
    if made != [(size, size) for size in given] or given != taken[: len(given)]:
        raise _strange(operation, "its body gives other bytes than it takes")
    spans = [_span(window.address, window.nbytes) for window in (*outputs, *inputs)]
    for number, span in enumerate(spans[: len(outputs)]):
        for place, other in enumerate(spans[number + 1 :], number + 1):
            is_its_own = place == len(outputs) + number and other == span
            if _overlap(span, other) and not is_its_own:
                raise _strange(operation, "its results share bytes with its other values")
    moving = [0 if place in body.in_place else size for place, size in enumerate(given)]
    return LoopStep(
        item_id=item_id,
        name=f"loop_{operation.loop_id}",
        condition=condition,
        body=body,
        inputs=tuple(window.address for window in inputs),
        outputs=tuple(window.address for window in outputs),
        sizes=tuple(given),
        most=operation.most,
        room=room_of(condition.block_size, max(plan.block_size for plan in (body, prepare or body)), moving, kept),
        prepare=prepare,
        needed=plans.needed,
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """The addresses of a turn: the values that condition and body take, and the places of the body's results."""

    values: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Turns:
    """The addresses of a loop. Turns alternate between `places`, so that each has always the same ones.

    Copies are `(target, source, size in bytes)`. Those of `begin` come before the first turn, those of `end` after the
    last one, by the remainder of the number of turns by 2. `kept` are the prepared values, which the body takes last.
    """

    places: tuple[Turn, Turn]
    kept: tuple[int, ...]
    begin: tuple[Copy, ...]
    end: tuple[tuple[Copy, ...], tuple[Copy, ...]]


def turns_of(step: LoopStep[Any], inputs: Sequence[int], outputs: Sequence[int], room: int) -> Turns:
    """The turns of a loop on these addresses; its own memory starts at the address `room`.

    A value that the body replaces in place stays at the address of its output. Any other one changes between that and
    the room, which it begins in.
    """
    carried, read = tuple(outputs), tuple(inputs[len(outputs) :])
    first = tuple(
        output if number in step.body.in_place else room + offset
        for number, (output, offset) in enumerate(zip(outputs, step.room.turns, strict=True))
    )
    places = Turn((*first, *read), carried), Turn((*carried, *read), first)
    kept = tuple(room + offset for offset in step.room.kept)
    return Turns(places, kept, _copies(first, inputs, step.sizes), (_copies(carried, first, step.sizes), ()))


def run_turns(
    step: LoopStep[Any],
    turns: Turns,
    goes_on: Callable[[int], bool],
    turn: Callable[[int], None],
    copy: Callable[[int, int, int], object],
) -> None:
    """Run a loop. `goes_on` runs the condition and `turn` the body at the place with the given number.

    CallTurnsError for more than `most` turns.
    """
    for each in turns.begin:
        copy(*each)
    number = 0
    while goes_on(number % 2):
        if number == step.most:
            raise CallTurnsError.beyond(step.most)
        turn(number % 2)
        number += 1
    for each in turns.end[number % 2]:
        copy(*each)


def _copies(targets: Sequence[int], sources: Sequence[int], sizes: Sequence[int]) -> tuple[Copy, ...]:
    """The copies that are needed between these addresses."""
    pairs = zip(targets, sources, sizes, strict=False)
    return tuple((target, source, size) for target, source, size in pairs if target != source and size)


def inner_loops(items: Sequence[Any]) -> list[Loop]:
    """The loops among operations."""
    return [operation for operation in items if isinstance(operation, Loop)]


def block_bytes(
    own: int, loops: Sequence[Loop], blocks: Mapping[int, int], carried: Callable[[Loop], Sequence[int]]
) -> int:
    """Bytes of a block: `own` bytes, then room for the largest of its loops, none of which prepares values."""
    rooms = [room_of(blocks[loop.condition], blocks[loop.body], carried(loop)).size for loop in loops]
    return round_up(own, ROOM_ALIGNMENT) + max(rooms) if rooms else own


def _strange(operation: Loop, message: str) -> DeviceError:
    return DeviceError(f"loop {operation.loop_id}: {message}; compile the program again")


def _span(address: Address, size: int) -> tuple[tuple[str, int], int, int]:
    return (address.base, address.index), address.offset, address.offset + size


def _overlap(one: tuple[tuple[str, int], int, int], other: tuple[tuple[str, int], int, int]) -> bool:
    return one[0] == other[0] and max(one[1], other[1]) < min(one[2], other[2])
