"""`jit` beside tinygrad itself: structures, state, random numbers, and what a compiled function cannot do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.errors import CallInputError
from tensorkiln.frontends.tinygrad import jit

from .recipe import floats, tinygrad

X = floats(4, 6)


def tensor(array: Any) -> Any:
    return tinygrad().Tensor(array).realize()


def test_arguments_and_results_keep_their_structure(client: Client) -> None:
    @jit(client=client)
    def function(tree: Any, *, scale: float) -> Any:
        return {"a": tree["x"] * scale, "b": (tree["y"][0].sum(), "text", None)}

    found = function({"x": tensor(X), "y": [tensor(X + 1)]}, scale=2.0)
    np.testing.assert_array_equal(found["a"].numpy(), X * 2)
    np.testing.assert_allclose(found["b"][0].numpy(), (X + 1).sum(), rtol=1e-5)
    assert found["b"][1:] == ("text", None)


def test_results_are_of_the_kind_that_the_arguments_are(client: Client) -> None:
    double = jit(lambda x: x * 2, client=client)
    assert type(double(X)) is np.ndarray
    half = double(tensor(X).bfloat16())
    assert isinstance(half, tinygrad().Tensor)
    assert half.dtype is tinygrad().dtypes.bfloat16


def test_each_signature_is_compiled_once(client: Client) -> None:
    traces: list[Any] = []

    @jit(client=client)
    def function(x: Any, power: Any) -> Any:
        traces.append(power)
        return x * power

    for array, power in ((X, 1), (X + 1, 1), (X, 1.0), (X, True), (X[:2], 1), (X, 1)):
        np.testing.assert_array_equal(function(array, power), array * power)
    assert len(traces) == function.signatures == 4


def test_weights_are_parameters_and_realized_once(client: Client) -> None:
    layer = tinygrad().nn.Linear(6, 3)
    compiled = jit(layer, client=client)
    found = compiled(tensor(X))
    np.testing.assert_allclose(found.numpy(), layer(tensor(X)).numpy(), rtol=1e-5, atol=1e-6)
    made = compiled.model(tensor(X))
    assert sorted(each.size for each in made.parameters.values()) == [3, 18]
    assert set(made.graph.parameter_vars) == made.parameters.keys()


def test_a_step_of_training_changes_what_tinygrad_s_changes(client: Client) -> None:
    nn, context = tinygrad().nn, tinygrad().Context

    def trained(compile_step: Callable[[Any], Any]) -> Any:
        weights = tensor(np.ones((6, 2), np.float32))
        optimizer = nn.optim.SGD([weights], lr=0.1, momentum=0.9)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (x @ weights).square().mean()
            loss.backward()
            return loss.realize(*optimizer.schedule_step())

        compiled = compile_step(step)
        with context(TRAINING=1):
            return [compiled(tensor(X)).item() for _ in range(3)], weights.numpy()

    losses, weights = trained(lambda step: jit(step, client=client))
    expected, expected_weights = trained(lambda step: step)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-5)


def test_calls_draw_what_tinygrad_draws_next(client: Client) -> None:
    kind = tinygrad().Tensor
    draw = jit(lambda: kind.rand(3), client=client)
    kind.manual_seed(5)
    expected = [kind.rand(3).numpy() for _ in range(3)]
    for _ in range(2):
        kind.manual_seed(5)
        found = [draw().numpy(), kind.rand(3).numpy(), draw().numpy()]
        np.testing.assert_array_equal(found, expected)
    assert draw.signatures == 1


def _kept(x: Any, kept: list[Any] = []) -> Any:  # noqa: B006  # the very thing that is refused
    kept.append(x + 1)
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x + x.sum().item(), "reads the value of a tensor"),
        (lambda x: x.assign(x + 1), r"changes its argument args\[0\]"),
        (_kept, r"keeps a tensor of the shape \(4, 6\)"),
        (lambda x: 3, "gives no tensor"),
    ],
)
def test_unsupported_functions_are_refused(client: Client, function: Any, message: str) -> None:
    compiled = jit(function, client=client)
    with pytest.raises(CallInputError, match=message):
        compiled(tensor(X))


def test_an_argument_that_cannot_be_compared_is_refused(client: Client) -> None:
    with pytest.raises(CallInputError, match=r"args\[0\] is a set"):
        jit(lambda x: x, client=client)({1})


class Pair(NamedTuple):
    w: Any
    scale: float = 1.0


@dataclass
class Layer:
    w: Any
    scale: float = 1.0
    doubled: float = field(init=False)

    def __post_init__(self) -> None:
        self.doubled = 2 * self.scale


@dataclass(frozen=True, slots=True)
class Config:
    scale: Any


@pytest.mark.parametrize("kind", [Pair, Layer])
def test_named_tuples_and_dataclasses_are_taken_apart(client: Client, kind: Any) -> None:
    @jit(client=client)
    def function(p: Any, x: Any) -> Any:
        return kind(p.w * x, p.scale) if kind is Pair else Layer(p.w * x * p.doubled, p.scale)

    for value in (1, 5):
        found = function(kind(tensor(X + value)), tensor(X))
        assert type(found) is kind
        np.testing.assert_allclose(found.w.numpy(), (X + value) * X * (1 if kind is Pair else 2), rtol=1e-6)
    assert function.signatures == 1


def test_equal_arguments_that_are_not_the_same_are_told_apart(client: Client) -> None:
    seen: list[Any] = []

    @jit(client=client)
    def function(x: Any, setting: Any) -> Any:
        seen.append(setting)
        return x + 1

    settings = [
        Config(1), Config(1.0), Config(True), Config(0.0), Config(-0.0), Config(Config(1)), Config(Config(1.0)),
        np.float32(0.0), np.float32(-0.0), np.float64(0.0), 0.0, -0.0, 0j, complex(0.0, -0.0),
        frozenset({1}), frozenset({1.0}), {1: 2}, {1.0: 2}, Pair(1), Pair(1.0), float("nan"), tinygrad().dtypes.half,
    ]  # fmt: skip
    for _ in range(2):
        for each in settings:
            function(X[:1, :1], each)
    assert len(seen) == function.signatures == len(settings)
    assert seen[-1] is tinygrad().dtypes.half


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w: Any) -> None:
        self.w = w


def test_an_object_that_holds_tensors_is_no_argument(client: Client) -> None:
    linear = tinygrad().nn.Linear(6, 3)
    compiled = jit(lambda layer, x: x, client=client)
    for each in (linear, Slotted(tensor(X)), Slotted([{"w": X}]), partial(max, tensor(X)), frozenset([tensor(X)])):
        with pytest.raises(CallInputError, match=r"args\[0\] is a \w+ that holds arrays"):
            compiled(each, tensor(X))


def test_a_method_closes_over_its_object(client: Client) -> None:
    class Model:
        def __init__(self) -> None:
            self.w = tensor(X + 1)

        @jit(client=client)
        def scaled(self, x: Any) -> Any:
            return self.w * x

    made = Model()
    np.testing.assert_array_equal(made.scaled(tensor(X)).numpy(), (X + 1) * X)


def test_one_thread_traces_at_a_time(client: Client) -> None:
    inner = Event()
    started: list[Thread] = []

    @jit(client=client)
    def second(x: Any) -> Any:
        inner.set()
        return x + 2

    @jit(client=client)
    def first(x: Any) -> Any:
        started.append(Thread(target=second.model, args=(X,)))
        started[0].start()
        # Were it let in, it would be in by then; it comes when this one is done.
        assert not inner.wait(0.2)
        return x + 1

    first.model(X)
    started[0].join(60)
    assert inner.is_set()


def test_tensors_that_a_function_closes_over_are_fixed(client: Client) -> None:
    weights = tensor(X)
    compiled = jit(lambda x: x + weights, client=client)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), X + X)
        weights.assign(tensor(X + 1)).realize()


def test_a_function_that_fails_leaves_tinygrad_as_it_was(client: Client) -> None:
    kind, weights = tinygrad().Tensor, tensor(X)
    before, realize = weights.uop, kind.realize

    def function(x: Any) -> Any:
        weights.assign(weights + x)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        jit(function, client=client)(tensor(X))
    assert weights.uop is before
    assert kind.realize is realize
    assert (tensor(X) + 1).numpy().tolist() == (X + 1).tolist()
