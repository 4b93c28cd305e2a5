"""RNN, GRU and LSTM, unrolled over a sequence of static length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .control import MAX_TURNS
from .node import Node

Activation = Callable[[Tensor], Tensor]
Step = Callable[[Tensor, "list[Tensor]"], "list[Tensor]"]
"""Computes the states after a step from its input and the states before; the first state is the step's output."""


@dataclass(frozen=True, slots=True)
class _Direction:
    """The parameters of one direction: input and recurrent weights, their biases, peepholes, activations."""

    weights: Tensor
    recurrent: Tensor
    bias: tuple[Tensor, Tensor] | None
    peepholes: Tensor | None
    activations: Sequence[Activation]
    hidden: int
    is_reversed: bool
    clip: float | None

    def clipped(self, x: Tensor) -> Tensor:
        """The input of an activation, clipped if the node has a clip value."""
        return x if self.clip is None else x.clip(-self.clip, self.clip)

    def gates(self) -> Callable[[Tensor, Tensor], list[Tensor]]:
        """A function from an input and a state to the list of gates."""
        weights, recurrent = build.transpose(self.weights), build.transpose(self.recurrent)
        bias = None if self.bias is None else self.bias[0] + self.bias[1]
        return lambda x, state: _apart(_sum(x @ weights + state @ recurrent, bias), self.hidden)


def _apart(x: Tensor, size: int) -> list[Tensor]:
    count = x.shape[-1]
    assert isinstance(count, int), "weights are of known shapes"
    return [x[..., place : place + size] for place in range(0, count, size)]


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


def _directions(node: Node, gates: int, defaults: Sequence[str], peepholes: int | None) -> list[_Direction]:
    which = node.choice("direction", ("forward", "reverse", "bidirectional"), "forward")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[which]
    weights, recurrent = node.tensor(1), node.tensor(2)
    hidden = node.integer("hidden_size", _known(node, recurrent.shape[-1]))
    if weights.shape[:2] != (len(backwards), gates * hidden):
        node.invalid(f"weights of {weights.shape} are not those of {len(backwards)} directions of {gates} gates")
    clip = node.number("clip") if node.is_set("clip") else None
    found: list[_Direction] = []
    for place, (is_reversed, activations) in enumerate(
        zip(backwards, _activations(node, defaults, len(backwards)), strict=True)
    ):
        bias = None
        if node.has(3):
            both = node.tensor(3)[place]
            bias = (both[: gates * hidden], both[gates * hidden :])
        own = node.tensor(peepholes)[place] if peepholes is not None and node.has(peepholes) else None
        found.append(_Direction(weights[place], recurrent[place], bias, own, activations, hidden, is_reversed, clip))
    return found


def _known(node: Node, dim: object) -> int:
    if isinstance(dim, int):
        return dim
    return node.fail(f"the extent {dim} of a sequence or of weights depends on symbols; fix these by `symbols`")


def _run(node: Node, directions: Sequence[_Direction], step: Callable[[_Direction], Step], states: int) -> list[Tensor]:
    """Y, then the last states, in the node's layout. Y is zero after the end of a shorter sequence."""
    by_batch = node.opset >= 14 and node.integer("layout", 0) == 1
    x = build.moveaxis(node.tensor(0), 0, 1) if by_batch else node.tensor(0)
    length, batch = _known(node, x.shape[0]), x.shape[1]
    if length > MAX_TURNS or not length:
        node.fail(f"a sequence of {length} steps is not unrolled")
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
        run, steps = step(direction), range(length)
        given_out: list[Tensor] = []
        for position in reversed(steps) if direction.is_reversed else steps:
            after = run(x[position], state)
            if lengths is None:
                state = after
                given_out.append(state[0])
            else:
                # After its end a sequence keeps its state; backwards, it has not begun.
                is_within = position < lengths
                state = [build.where(is_within, new, old) for new, old in zip(after, state, strict=True)]
                given_out.append(build.where(is_within, after[0], 0.0))
        if direction.is_reversed:
            given_out.reverse()
        outputs.append(build.stack(given_out, 0))
        for number in range(states):
            last[number].append(state[number])
    # [step, direction, batch, hidden], or [batch, step, direction, hidden].
    y = build.stack(outputs, 1)
    if by_batch:
        return [build.moveaxis(y, 2, 0), *(build.stack(each, 1) for each in last)]
    return [y, *(build.stack(each, 0) for each in last)]


def rnn(node: Node) -> list[Tensor]:
    def step(direction: _Direction) -> Step:
        gates = direction.gates()

        def run(x: Tensor, states: list[Tensor]) -> list[Tensor]:
            (gate,) = gates(x, states[0])
            return [direction.activations[0](direction.clipped(gate))]

        return run

    return _run(node, _directions(node, 1, ("Tanh",), None), step, 1)


def gru(node: Node) -> list[Tensor]:
    """Gates: update, reset, hidden. `linear_before_reset` multiplies the hidden gate's states after their weights."""
    resets_late = node.integer("linear_before_reset", 0) == 1

    def step(direction: _Direction) -> Step:
        size, (first, second) = direction.hidden, direction.activations
        weights = build.transpose(direction.weights)
        recurrent = [build.transpose(direction.recurrent[place : place + size]) for place in range(0, 3 * size, size)]
        none: list[Tensor | None] = [None] * 3
        own, other = none, none
        if direction.bias is not None:
            own, other = ([*_apart(bias, size)] for bias in direction.bias)

        def run(x: Tensor, states: list[Tensor]) -> list[Tensor]:
            (state,) = states
            inputs = _apart(x @ weights, size)

            def gate(place: int) -> Tensor:
                return _sum(inputs[place] + state @ recurrent[place], own[place], other[place])

            update, reset = (first(direction.clipped(gate(place))) for place in (0, 1))
            if resets_late:
                hidden = reset * _sum(state @ recurrent[2], other[2])
                new = second(direction.clipped(_sum(inputs[2] + hidden, own[2])))
            else:
                hidden = (reset * state) @ recurrent[2]
                new = second(direction.clipped(_sum(inputs[2] + hidden, own[2], other[2])))
            return [(1.0 - update) * new + update * state]

        return run

    return _run(node, _directions(node, 3, ("Sigmoid", "Tanh"), None), step, 1)


def _sum(x: Tensor, *others: Tensor | None) -> Tensor:
    for other in others:
        x = x if other is None else x + other
    return x


def lstm(node: Node) -> list[Tensor]:
    """Gates: input, output, forget, cell; the peepholes of the first three read the cell."""
    if node.integer("input_forget", 0):
        node.fail("input_forget is not supported")

    def step(direction: _Direction) -> Step:
        gates = direction.gates()
        peepholes = None if direction.peepholes is None else _apart(direction.peepholes, direction.hidden)

        def seen(gate: Tensor, place: int, cell: Tensor) -> Tensor:
            return direction.clipped(gate if peepholes is None else gate + peepholes[place] * cell)

        def run(x: Tensor, states: list[Tensor]) -> list[Tensor]:
            state, cell = states
            enters, leaves, stays, new = gates(x, state)
            first, second, third = direction.activations
            kept = first(seen(stays, 2, cell)) * cell
            after = kept + first(seen(enters, 0, cell)) * second(direction.clipped(new))
            return [first(seen(leaves, 1, after)) * third(after), after]

        return run

    return _run(node, _directions(node, 4, ("Sigmoid", "Tanh", "Tanh"), 7), step, 2)


OPERATORS: dict[str, Callable[[Node], Sequence[Tensor]]] = {"GRU": gru, "LSTM": lstm, "RNN": rnn}
