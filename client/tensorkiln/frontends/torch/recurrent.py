"""Recurrent layers: LSTM, GRU and RNN, of several layers and in both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ... import build
from ...build import Tensor
from ..composed.recurrence import Step, recurrence
from .call import Call, Operator
from .linear import affine

LSTM_MODE: Final = 2
"""torch's number of the LSTM mode, the only mode of `mkldnn_rnn_layer`."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """The weights of one direction of a layer.

    `into` is (gates * hidden, features) and multiplies inputs, `over` (gates * hidden, outputs) multiplies the output
    of the step before. `projection`, (outputs, hidden), makes an LSTM's outputs of its hidden state.
    """

    into: Tensor
    over: Tensor
    biases: tuple[Tensor, Tensor] | None = None
    projection: Tensor | None = None

    def enter(self, x: Tensor) -> Tensor:
        """What the inputs of all steps add to their gates."""
        return affine(x, self.into, None if self.biases is None else self.biases[0])

    @property
    def read(self) -> list[Tensor]:
        """The weights that a step reads."""
        bias = [] if self.biases is None else [self.biases[1]]
        return [self.over, *bias, *([] if self.projection is None else [self.projection])]

    def recurrent(self, read: Sequence[Tensor]) -> tuple[Callable[[Tensor], Tensor], Tensor | None]:
        """What the output of the step before adds to the gates, and the projection.

        `read` are the weights of `self.read` as the step sees them: in a loop, they are inputs of its body.
        """
        over, *others = read
        bias = None if self.biases is None else others.pop(0)
        return lambda state: affine(state, over, bias), others[0] if others else None


_Cell: TypeAlias = "Callable[[_Weights, Sequence[Tensor]], Step]"
"""Makes the step of a cell that reads these weights."""


def _apart(gates: Tensor, count: int) -> tuple[Tensor, ...]:
    width = gates.shape[1]
    assert isinstance(width, int), "weights are of known shapes"
    return build.split(gates, [width // count] * count, 1)


def _lstm_cell(weights: _Weights, read: Sequence[Tensor]) -> Step:
    """Gates: input, forget, cell, output."""
    recurrent, projection = weights.recurrent(read)

    def step(entered: Tensor, states: list[Tensor]) -> list[Tensor]:
        state, cells = states
        enter, forget, new, leave = _apart(entered + recurrent(state), 4)
        cells = build.sigmoid(forget) * cells + build.sigmoid(enter) * build.tanh(new)
        state = build.sigmoid(leave) * build.tanh(cells)
        return [state if projection is None else affine(state, projection, None), cells]

    return step


def _gru_cell(weights: _Weights, read: Sequence[Tensor]) -> Step:
    """Gates: reset, update, new. The reset gate multiplies the product of the state, with its bias."""
    recurrent, _ = weights.recurrent(read)

    def step(entered: Tensor, states: list[Tensor]) -> list[Tensor]:
        (state,) = states
        reset, update, new = _apart(entered, 3)
        over_reset, over_update, over_new = _apart(recurrent(state), 3)
        fresh = build.tanh(new + build.sigmoid(reset + over_reset) * over_new)
        return [(state - fresh) * build.sigmoid(update + over_update) + fresh]

    return step


def _rnn_cell(activation: Callable[[Tensor], Tensor]) -> _Cell:
    def cell(weights: _Weights, read: Sequence[Tensor]) -> Step:
        recurrent, _ = weights.recurrent(read)
        return lambda entered, states: [activation(entered + recurrent(states[0]))]

    return cell


def _direction(
    call: Call, x: Tensor, states: Sequence[Tensor], weights: _Weights, cell: _Cell, is_reversed: bool
) -> tuple[Tensor, list[Tensor]]:
    """The outputs of one direction of a layer, and its last states."""
    if x.shape[0] == 0:
        call.fail("a sequence of 0 steps has no last state")
    entered = weights.enter(x)
    return recurrence(entered, states, weights.read, lambda read: cell(weights, read), is_reversed=is_reversed)


def _stacked(cell: _Cell, states: int) -> Operator:
    """The operator of all layers of a module: the outputs of the last layer, then the last states of all of them."""

    def layers(call: Call) -> list[Tensor]:
        if call.flag("train") and call.number("dropout") > 0 and call.integer("num_layers") > 1:
            # torch's decomposition leaves it out.
            call.fail("dropout between recurrent layers in training is not supported: call eval() before the export")
        directions = 2 if call.flag("bidirectional") else 1
        weights = _weights(call, call.integer("num_layers") * directions)
        x = build.moveaxis(call.tensor("input"), 0, 1) if call.flag("batch_first") else call.tensor("input")
        given = call.tensors("hx") if states > 1 else [call.tensor("hx")]
        last: list[list[Tensor]] = [[] for _ in range(states)]
        for layer in range(0, len(weights), directions):
            outputs: list[Tensor] = []
            for place in range(layer, layer + directions):
                own = [each[place] for each in given]
                output, after = _direction(call, x, own, weights[place], cell, place > layer)
                outputs.append(output)
                for kept, state in zip(last, after, strict=True):
                    kept.append(state)
            x = build.cat(outputs, 2) if directions > 1 else outputs[0]
        return [build.moveaxis(x, 0, 1) if call.flag("batch_first") else x, *(build.stack(each, 0) for each in last)]

    return layers


def _weights(call: Call, count: int) -> list[_Weights]:
    """The weights of `count` directions of layers: two products, two biases if there are any, perhaps a projection."""
    given = call.tensors("params")
    each, rest = divmod(len(given), count)
    has_biases = call.flag("has_biases")
    plain = 4 if has_biases else 2
    if rest or each not in (plain, plain + 1):
        call.invalid(f"{len(given)} weights are not those of {count} directions of layers")
    found: list[_Weights] = []
    for first in range(0, len(given), each):
        own = given[first : first + each]
        biases = (own[2], own[3]) if has_biases else None
        found.append(_Weights(own[0], own[1], biases, own[plain] if each > plain else None))
    return found


def _layer(call: Call) -> list[Tensor]:
    """One direction of an LSTM, with the steps first: all outputs, the last output and the last cells."""
    if call.integer("mode") != LSTM_MODE or call.integers("batch_sizes", []) or call.flag("batch_first"):
        call.fail("only an LSTM over whole sequences, with the steps on the first axis, is supported")
    x = call.tensor("input")
    biases = (call.tensor("weight2"), call.tensor("weight3")) if call.flag("has_biases") else None
    weights = _Weights(call.tensor("weight0"), call.tensor("weight1"), biases)
    states = [call.tensor(name).reshape([x.shape[1], call.integer("hidden_size")]) for name in ("hx_", "cx_")]
    output, last = _direction(call, x, states, weights, _lstm_cell, call.flag("reverse"))
    shaped = [
        each.reshape(call.result_shape(place)) if call.is_read(place) else each
        for place, each in enumerate(last, start=1)
    ]
    return [output, *shaped]


WHOLE: Final[dict[str, Operator]] = {
    "aten.gru.input": _stacked(_gru_cell, 1),
    "aten.lstm.input": _stacked(_lstm_cell, 2),
    "aten.rnn_relu.input": _stacked(_rnn_cell(build.relu), 1),
    "aten.rnn_tanh.input": _stacked(_rnn_cell(build.tanh), 1),
}
"""Operators that torch decomposes to all of their steps."""
OPERATORS: dict[str, Operator] = {**WHOLE, "aten.mkldnn_rnn_layer.default": _layer}
