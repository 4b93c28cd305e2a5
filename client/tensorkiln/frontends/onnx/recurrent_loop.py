"""The steps of a recurrent operator over a sequence whose length is a symbol: a loop that writes a step a turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ..composed.placing import put

Step = Callable[[Tensor, "list[Tensor]"], "list[Tensor]"]
"""Computes the states after a step from what its input adds, and the states before; the first state is its output."""


def stepwise(
    entered: Tensor,
    states: Sequence[Tensor],
    lengths: Tensor | None,
    weights: Sequence[Tensor],
    step: Callable[[Sequence[Tensor]], Step],
    *,
    is_reversed: bool,
) -> tuple[Tensor, list[Tensor]]:
    """The outputs of all steps, (steps, batch, hidden), and the states after the last one.

    `entered` is (steps, batch, gates). `lengths`, int64 of the shape (batch, 1), are those of shorter sequences: after
    its end a sequence keeps its state, and its output is 0. `step` makes a step that reads these `weights`.
    """
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
