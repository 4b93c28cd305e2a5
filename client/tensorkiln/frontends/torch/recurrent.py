"""The LSTM layer that torch runs as one operator on a CPU, unrolled over a static number of steps."""

from __future__ import annotations

from typing import Final

from ... import build
from ...build import Tensor
from .call import Call, Operator

MAX_STEPS: Final = 1024
LSTM: Final = 2
"""torch's number of the LSTM mode, the only mode of this operator."""


def _layer(call: Call) -> list[Tensor]:
    """One direction, with steps on the first axis; returns all outputs, the last output and the last cell state."""
    x, length = call.tensor("input"), call.tensor("input").shape[0]
    if call.integer("mode") != LSTM or call.integers("batch_sizes", []) or call.flag("batch_first"):
        call.fail("only an LSTM over whole sequences, with the steps on the first axis, is supported")
    if not isinstance(length, int):
        call.fail(f"the {length} steps must be known: keep that size by torch._dynamo.mark_static")
    if not 0 < length <= MAX_STEPS:
        call.fail(f"{length} steps cannot be unrolled; 1 to {MAX_STEPS} can")
    batch, hidden = x.shape[1], call.integer("hidden_size")
    into, over = (call.tensor(name).transpose() for name in ("weight0", "weight1"))
    given = build.matmul(x, into)
    if call.flag("has_biases"):
        given = given + (call.tensor("weight2") + call.tensor("weight3"))
    state, cells = (call.tensor(name).reshape([batch, hidden]) for name in ("hx_", "cx_"))
    seen: dict[int, Tensor] = {}
    steps = range(length)
    for place in reversed(steps) if call.flag("reverse") else steps:
        gates = given[place] + build.matmul(state, over)
        enter, forget, new, leave = (gates[:, hidden * k : hidden * (k + 1)] for k in range(4))
        cells = build.sigmoid(forget) * cells + build.sigmoid(enter) * build.tanh(new)
        state = build.sigmoid(leave) * build.tanh(cells)
        seen[place] = state
    last = [
        each.reshape(call.result_shape(place)) if call.is_read(place) else each
        for place, each in ((1, state), (2, cells))
    ]
    return [build.stack([seen[place] for place in steps], 0), *last]


OPERATORS: dict[str, Operator] = {"aten.mkldnn_rnn_layer.default": _layer}
