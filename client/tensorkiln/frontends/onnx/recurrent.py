"""RNN, GRU and LSTM: unrolled over a short sequence of static length, a loop over any other one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ..composed.recurrence import Step, recurrence
from .node import Node
from .quantization import dynamically_quantized

Activation = Callable[[Tensor], Tensor]
LSTM_ACTIVATIONS: Final = ("Sigmoid", "Tanh", "Tanh")


@dataclass(frozen=True, slots=True)
class Direction:
    """The parameters of one direction: input and recurrent weights, their biases, peepholes, activations.

    Weights are (gates * hidden, features). With `scales`, those of the input and recurrent weights, these are integers,
    and what is multiplied by them is quantised as well.
    """

    weights: Tensor
    recurrent: Tensor
    bias: tuple[Tensor, Tensor] | None
    peepholes: Tensor | None
    activations: Sequence[Activation]
    hidden: int
    is_reversed: bool
    clip: float | None
    scales: tuple[Tensor, Tensor] | None = None

    def clipped(self, x: Tensor) -> Tensor:
        """The input of an activation, clipped if the node has a clip value."""
        return x if self.clip is None else x.clip(-self.clip, self.clip)

    def enter(self, x: Tensor) -> Tensor:
        """The products of all inputs with their weights, and both biases."""
        found = _product(x, build.transpose(self.weights), None if self.scales is None else self.scales[0])
        return _sum(found, None if self.bias is None else self.bias[0] + self.bias[1])

    def gates(self) -> Callable[[Tensor, Tensor], list[Tensor]]:
        """A function from what an input adds and a state to the list of gates."""
        recurrent, scale = build.transpose(self.recurrent), None if self.scales is None else self.scales[1]
        return lambda entered, state: _apart(entered + _product(state, recurrent, scale), self.hidden)

    @property
    def read(self) -> list[Tensor]:
        """The tensors that a step reads."""
        peepholes = [] if self.peepholes is None else [self.peepholes]
        return [self.recurrent, *(self.scales or ()), *(self.bias or ()), *peepholes]

    def reading(self, read: Sequence[Tensor]) -> Direction:
        """The same with these tensors in place of those that a step reads."""
        recurrent, *others = read
        scales = None if self.scales is None else (others.pop(0), others.pop(0))
        bias = None if self.bias is None else (others.pop(0), others.pop(0))
        peepholes = others[0] if others else None
        kept = (self.activations, self.hidden, self.is_reversed, self.clip)
        return Direction(self.weights, recurrent, bias, peepholes, *kept, scales)


def _product(x: Tensor, weights: Tensor, scale: Tensor | None) -> Tensor:
    """`x @ weights`; with a scale, of one number or one for each column, of integers that stand for `x`."""
    if scale is None:
        return x @ weights
    codes, own = dynamically_quantized(x)
    return (codes @ weights).cast(x.dtype) * (own * scale)


def _apart(x: Tensor, size: int) -> list[Tensor]:
    count = x.shape[-1]
    assert isinstance(count, int), "weights are of known shapes"
    return list(build.split(x, [size] * (count // size), -1))


def _elu(alpha: float) -> Activation:
    return lambda x: build.elu(x, alpha)


_WITH_BETA = frozenset({"affine", "hardsigmoid", "scaledtanh"})
_WITH_ALPHA = _WITH_BETA | {"elu", "leakyrelu", "thresholdedrelu"}


def _activation(node: Node, name: str, alpha: float | None, beta: float | None) -> Activation:
    known: dict[str, Activation] = {
        "affine": lambda x: x * (1.0 if alpha is None else alpha) + (beta or 0.0),
        "elu": _elu(1.0 if alpha is None else alpha),
        "hardsigmoid": lambda x: (x * (0.2 if alpha is None else alpha) + (0.5 if beta is None else beta)).clip(
            0.0, 1.0
        ),
        "leakyrelu": lambda x: build.leaky_relu(x, 0.01 if alpha is None else alpha),
        "relu": build.relu,
        "scaledtanh": lambda x: build.tanh(x * (1.0 if beta is None else beta)) * (1.0 if alpha is None else alpha),
        "sigmoid": build.sigmoid,
        "softplus": build.softplus,
        "softsign": lambda x: x / (build.absolute(x) + 1.0),
        "tanh": build.tanh,
        "thresholdedrelu": lambda x: build.where(x > (1.0 if alpha is None else alpha), x, 0.0),
    }
    return known[name.lower()] if name.lower() in known else node.fail(f"the activation {name} is not supported")


def _activations(node: Node, defaults: Sequence[str], directions: int) -> Iterator[Sequence[Activation]]:
    """The activations of each direction. A function with a parameter takes the next listed value."""
    names = node.strings("activations", [*defaults] * directions)
    alphas, betas = iter(node.numbers("activation_alpha", [])), iter(node.numbers("activation_beta", []))
    if len(names) != len(defaults) * directions:
        node.invalid(f"{len(names)} activations are given, {len(defaults)} are taken in each direction")
    made = [
        _activation(
            node,
            name,
            next(alphas, None) if name.lower() in _WITH_ALPHA else None,
            next(betas, None) if name.lower() in _WITH_BETA else None,
        )
        for name in names
    ]
    for first in range(0, len(made), len(defaults)):
        yield made[first : first + len(defaults)]


def directions_of(
    node: Node,
    gates: int,
    defaults: Sequence[str],
    peepholes: int | None,
    integers: tuple[Tensor, Tensor] | None = None,
    scales: tuple[Tensor, Tensor] | None = None,
) -> list[Direction]:
    """The parameters of each direction; `integers` and their `scales` in place of the node's weights."""
    which = node.choice("direction", ("forward", "reverse", "bidirectional"), "forward")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[which]
    weights, recurrent = integers or (node.tensor(1), node.tensor(2))
    hidden = node.integer("hidden_size", _known(node, recurrent.shape[-1]))
    if weights.shape[:2] != (len(backwards), gates * hidden):
        node.invalid(f"weights of {weights.shape} are not those of {len(backwards)} directions of {gates} gates")
    clip = node.number("clip") if node.is_set("clip") else None
    found: list[Direction] = []
    for place, (is_reversed, activations) in enumerate(
        zip(backwards, _activations(node, defaults, len(backwards)), strict=True)
    ):
        bias = None
        if node.has(3):
            both = node.tensor(3)[place]
            bias = (both[: gates * hidden], both[gates * hidden :])
        own = node.tensor(peepholes)[place] if peepholes is not None and node.has(peepholes) else None
        scale = None if scales is None else (scales[0][place], scales[1][place])
        kept = (bias, own, activations, hidden, is_reversed, clip, scale)
        found.append(Direction(weights[place], recurrent[place], *kept))
    return found


def _known(node: Node, dim: object) -> int:
    if isinstance(dim, int):
        return dim
    return node.fail(f"the extent {dim} of weights depends on symbols; fix these by `symbols`")


def _run(
    node: Node,
    directions: Sequence[Direction],
    step: Callable[[Direction], Step],
    states: int,
    enter: Callable[[Direction, Tensor], Tensor] = Direction.enter,
) -> list[Tensor]:
    """Y, then the last states, in the node's layout. Y is zero after the end of a shorter sequence."""
    by_batch = node.opset >= 14 and node.integer("layout", 0) == 1
    x = build.moveaxis(node.tensor(0), 0, 1) if by_batch else node.tensor(0)
    length, batch = x.shape[:2]
    if length == 0:
        node.fail("a sequence of 0 steps has no last state")
    lengths = node.tensor(4).cast(DType.INT64).unsqueeze(1) if node.has(4) else None
    outputs: list[Tensor] = []
    last: list[list[Tensor]] = [[] for _ in range(states)]
    for place, direction in enumerate(directions):
        state: list[Tensor] = []
        for number in range(states):
            if node.has(5 + number):
                given = node.tensor(5 + number)
                state.append(given[:, place] if by_batch else given[place])
            else:
                state.append(build.zeros(x.builder, (batch, direction.hidden), x.dtype))
        made, state = recurrence(
            enter(direction, x),
            state,
            direction.read,
            lambda read, own=direction: step(own.reading(read)),
            lengths=lengths,
            is_reversed=direction.is_reversed,
        )
        outputs.append(made)
        for number in range(states):
            last[number].append(state[number])
    # [step, direction, batch, hidden], or [batch, step, direction, hidden].
    y = build.stack(outputs, 1)
    if by_batch:
        return [build.moveaxis(y, 2, 0), *(build.stack(each, 1) for each in last)]
    return [y, *(build.stack(each, 0) for each in last)]


def rnn(node: Node) -> list[Tensor]:
    def step(direction: Direction) -> Step:
        gates = direction.gates()

        def run(entered: Tensor, states: list[Tensor]) -> list[Tensor]:
            (gate,) = gates(entered, states[0])
            return [direction.activations[0](direction.clipped(gate))]

        return run

    return _run(node, directions_of(node, 1, ("Tanh",), None), step, 1)


def gru(node: Node) -> list[Tensor]:
    """Gates: update, reset, hidden. `linear_before_reset` multiplies the hidden gate's states after their weights."""
    resets_late = node.integer("linear_before_reset", 0) == 1

    def step(direction: Direction) -> Step:
        size, (first, second) = direction.hidden, direction.activations
        recurrent = build.transpose(direction.recurrent)
        early, last = recurrent[:, : 2 * size], recurrent[:, 2 * size :]
        late = None if direction.bias is None or not resets_late else direction.bias[1][2 * size :]

        def run(entered: Tensor, states: list[Tensor]) -> list[Tensor]:
            (state,) = states
            inputs = _apart(entered, size)
            if resets_late:
                *products, hidden = _apart(state @ recurrent, size)
            else:
                products, hidden = _apart(state @ early, size), None
            update, reset = (
                first(direction.clipped(inputs[place] + product)) for place, product in enumerate(products)
            )
            hidden = (reset * state) @ last if hidden is None else reset * _sum(hidden, late)
            new = second(direction.clipped(inputs[2] + hidden))
            return [(1.0 - update) * new + update * state]

        return run

    def enter(direction: Direction, x: Tensor) -> Tensor:
        if direction.bias is None or not resets_late:
            return direction.enter(x)
        own, other = direction.bias
        early = 2 * direction.hidden
        bias = build.cat([own[:early] + other[:early], own[early:]], 0)
        return x @ build.transpose(direction.weights) + bias

    return _run(node, directions_of(node, 3, ("Sigmoid", "Tanh"), None), step, 1, enter)


def _sum(x: Tensor, *others: Tensor | None) -> Tensor:
    for other in others:
        x = x if other is None else x + other
    return x


def lstm(node: Node) -> list[Tensor]:
    return long_short_term(node, directions_of(node, 4, LSTM_ACTIVATIONS, 7))


def long_short_term(node: Node, directions: Sequence[Direction]) -> list[Tensor]:
    """An LSTM. Gates: input, output, forget, cell; the peepholes of the first three read the cell."""
    if node.integer("input_forget", 0):
        node.fail("input_forget is not supported")

    def step(direction: Direction) -> Step:
        gates = direction.gates()
        peepholes = None if direction.peepholes is None else _apart(direction.peepholes, direction.hidden)

        def seen(gate: Tensor, place: int, cell: Tensor) -> Tensor:
            return direction.clipped(gate if peepholes is None else gate + peepholes[place] * cell)

        def run(entered: Tensor, states: list[Tensor]) -> list[Tensor]:
            state, cell = states
            enters, leaves, stays, new = gates(entered, state)
            first, second, third = direction.activations
            kept = first(seen(stays, 2, cell)) * cell
            after = kept + first(seen(enters, 0, cell)) * second(direction.clipped(new))
            return [first(seen(leaves, 1, after)) * third(after), after]

        return run

    return _run(node, directions, step, 2)


OPERATORS: dict[str, Callable[[Node], Sequence[Tensor]]] = {"GRU": gru, "LSTM": lstm, "RNN": rnn}
