"""A recurrence over the first axis of a tensor: unrolled over few steps, else a loop that writes a step a turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .placing import put

UNROLLED: Final = 16
"""Most steps that are unrolled: a loop of more is as fast, and compiles in a fraction of the time."""

Step = Callable[[Tensor, "list[Tensor]"], "list[Tensor]"]
"""Computes the states after a step from what its input adds, and the states before; the first state is its output."""


def recurrence(
    entered: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    step: Callable[[Sequence[Tensor]], Step],
    *,
    lengths: Tensor | None = None,
    is_reversed: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """The outputs of all steps, (steps, batch, hidden), and the states after the last one.

    `entered` is (steps, batch, gates), each state (batch, …). `lengths`, int64 of the shape (batch, 1), are those of
    shorter sequences: after its end a sequence keeps its state, and its output is 0. `step` makes a step of
    the `weights` as it sees them: in the body of a loop, they are inputs of that body.
    """
    length = entered.shape[0]
    if isinstance(length, int) and length <= UNROLLED:
        return _unrolled(entered, list(states), lengths, step(weights), length, is_reversed)
    return _looped(entered, states, lengths, weights, step, is_reversed)


def _unrolled(
    entered: Tensor, state: list[Tensor], lengths: Tensor | None, run: Step, length: int, is_reversed: bool
) -> tuple[Tensor, list[Tensor]]:
    outputs: list[Tensor] = []
    for position in reversed(range(length)) if is_reversed else range(length):
        after = run(entered[position], state)
        if lengths is None:
            state = after
            outputs.append(state[0])
        else:
            # Backwards, a shorter sequence has not begun.
            is_within = position < lengths
            state = [build.where(is_within, new, old) for new, old in zip(after, state, strict=True)]
            outputs.append(build.where(is_within, after[0], 0.0))
    if is_reversed:
        outputs.reverse()
    return build.stack(outputs, 0), state


def _looped(
    entered: Tensor,
    states: Sequence[Tensor],
    lengths: Tensor | None,
    weights: Sequence[Tensor],
    step: Callable[[Sequence[Tensor]], Step],
    is_reversed: bool,
) -> tuple[Tensor, list[Tensor]]:
    builder, (length, batch, _) = entered.builder, entered.shape
    count = len(states)

    def goes_on(turn: Tensor, *_: Tensor) -> Tensor:
        return turn < build.dim_value(turn.builder, length)

    def turns(turn: Tensor, outputs: Tensor, *given: Tensor) -> list[Tensor]:
        before, (all_entered, *read) = list(given[:count]), given[count:]
        within = None if lengths is None else read.pop(0)
        position = build.dim_value(turn.builder, length) - 1 - turn if is_reversed else turn
        place = position.reshape([1, 1, 1]).expand([1, *entered.shape[1:]])
        after = step(read)(build.gather(all_entered, place, 0).squeeze([0]), before)
        output = after[0]
        if within is not None:
            is_within = position < within
            output = build.where(is_within, output, 0.0)
            after = [build.where(is_within, new, old) for new, old in zip(after, before, strict=True)]
        here = position.reshape([1, 1, 1]).expand([1, *outputs.shape[1:]])
        return [turn + 1, put(outputs, here, output.unsqueeze([0]), 0), *after]

    first = build.zeros(builder, (), DType.INT64)
    nothing = build.zeros(builder, (length, batch, states[0].shape[1]), entered.dtype)
    reads = [entered, *([] if lengths is None else [lengths]), *weights]
    _, outputs, *last = build.while_loop(
        goes_on, turns, [first, nothing, *states], reads, most=builder.bounds(length)[1]
    )
    return outputs, last
