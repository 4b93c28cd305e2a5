"""Calls at one new binding of the symbols after the other, as a loop that decodes makes them."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, softmax
from tensorkiln.errors import CallError
from tensorkiln.expr import symbol
from tensorkiln.infer import Constraint
from tensorkiln.program import Program
from tensorkiln.runtime import native_call
from tensorkiln.runtime.plans import Plans
from tests.compiled import compiled, program
from tests.runtime.kernels import ADD
from tests.runtime.sketch import Sketch

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)
KEYS, VALUES, QUERY = (RNG.standard_normal(shape).astype(np.float32) for shape in ((400, 16), (400, 16), (1, 16)))


def attention(b: Builder) -> tuple[Tensor, ...]:
    n = b.symbol("n", 1, 4096)
    query, keys, values = b.input("float32", (1, 16)), b.input("float32", (n, 16)), b.input("float32", (n, 16))
    return softmax(query @ keys.transpose()) @ values, values + keys


def layers(b: Builder) -> tuple[Tensor, ...]:
    n = b.symbol("n", 0, 4096)
    x, weights = b.input("float32", (n, 16)), b.input("float32", (16, 16))
    for _ in range(4):
        x = softmax(x @ weights)
    return (x,)


def made(write: Callable[[Builder], tuple[Tensor, ...]]) -> Program:
    b = Builder("bindings")
    b.output(*write(b))
    return program(compiled(b.graph()))


def in_python(write: Callable[[Builder], tuple[Tensor, ...]]) -> Callable[..., tuple[Array, ...]]:
    """The same program without machine code for its calls."""
    called = made(write)

    def call(*arrays: Array, **symbols: int) -> tuple[Array, ...]:
        with mock.patch.object(native_call, "is_known_layout", return_value=False):
            native_call.machine_code.cache_clear()
            try:
                return called(*arrays, **symbols)
            finally:
                native_call.machine_code.cache_clear()

    return call


def attend(keys: Array, values: Array) -> Array:
    scores = QUERY.astype(np.float64) @ keys.T
    weights = np.exp(scores - scores.max())
    return weights @ values / weights.sum()


def test_a_loop_that_decodes_gives_the_right_results_without_a_plan_for_each_step() -> None:
    decode = made(attention)
    with mock.patch.object(Plans, "make", autospec=True, side_effect=Plans[Any].make) as plans:
        for n in range(1, 401):
            attended, summed = decode(QUERY, KEYS[:n], VALUES[:n], n=n)
            np.testing.assert_allclose(attended, attend(KEYS[:n], VALUES[:n]), rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(summed, VALUES[:n] + KEYS[:n])
    assert plans.call_count == 1


def test_temporaries_that_grow_and_shrink_have_room() -> None:
    called, slow = made(layers), in_python(layers)
    sizes = [*range(40), *range(2000, 40, -97), 0, 2047, 1, 300]
    weights = KEYS[:16]
    x = RNG.standard_normal((4096, 16)).astype(np.float32)
    for n in sizes:
        assert called(x[:n], weights, n=n)[0].tobytes() == slow(x[:n], weights, n=n)[0].tobytes(), n
        assert called.measured_peak_bytes >= called.planned_peak_bytes(n=n)


def test_threads_at_bindings_of_their_own_are_not_in_each_others_way() -> None:
    called = made(layers)
    weights = KEYS[:16]
    x = RNG.standard_normal((500, 16)).astype(np.float32)
    wanted = {n: called(x[:n], weights, n=n)[0].tobytes() for n in range(0, 500, 5)}
    fresh, wrong = made(layers), list[int]()

    def calls(seed: int) -> None:
        sizes = random.Random(seed)
        for n in sizes.choices(sorted(wanted), k=400):
            if fresh(x[:n], weights, n=n)[0].tobytes() != wanted[n]:
                wrong.append(n)

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_call_at_another_binding_while_garbage_is_collected_for_one_is_one_of_its_own() -> None:
    called = made(layers)
    weights = KEYS[:16]
    x = RNG.standard_normal((64, 16)).astype(np.float32)
    wanted = {n: called(x[:n], weights, n=n)[0].tobytes() for n in range(64)}
    inner = iter(range(1, 1 << 30))

    def again(phase: str, _: object) -> None:
        n = next(inner) * 7 % 64
        assert called(x[:n], weights, n=n)[0].tobytes() == wanted[n], phase

    thresholds = gc.get_threshold()
    gc.callbacks.append(again)
    gc.set_threshold(5)
    try:
        kept = [{n % 64: called(x[: n % 64], weights, n=n % 64)[0]} for n in range(2000)]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(again)
    assert next(inner) > 100
    assert all(result.tobytes() == wanted[n] for each in kept for n, result in each.items())


def constrained() -> Program:
    n, m = symbol("n"), symbol("m")
    sketch = Sketch(symbols={"n": (1, 100), "m": (1, 100)})
    sketch.elementwise(
        ADD, "add", [sketch.buffer([n], "input"), sketch.buffer([m], "input"), sketch.buffer([n], "output")]
    )
    sketch.constraints = [Constraint("eq", n, m, "/nodes/2", "the operands have the same shape")]
    return sketch.program()


FIVE = np.ones(5, np.float32)
WRONG: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((FIVE, FIVE), {"n": 5}),
    ((FIVE, FIVE), {"n": 5, "m": 5, "k": 5}),
    ((FIVE, FIVE), {"n": 5, "k": 5}),
    ((FIVE, FIVE), {"n": 5, "m": True}),
    ((FIVE, FIVE), {"n": 5.0, "m": 5}),
    ((FIVE, FIVE), {"n": 5, "m": None}),
    ((FIVE, FIVE), {"n": 0, "m": 5}),
    ((FIVE, FIVE), {"n": 101, "m": 1 << 80}),
    ((FIVE,), {"n": 5, "m": 5}),
    ((FIVE, FIVE, FIVE), {"n": 5, "m": 5}),
    ((FIVE, FIVE), {"n": 4, "m": 5}),
    ((FIVE, FIVE.astype(np.int32)), {"n": 5, "m": 5}),
    ((FIVE, FIVE[:3]), {"n": 5, "m": 3}),
    ((FIVE, "five"), {"n": 5, "m": 5}),
)


@pytest.mark.parametrize("given", WRONG, ids=lambda given: str(given[1]))
def test_errors_are_those_of_a_first_call(given: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    arrays, symbols = given
    with pytest.raises(CallError) as first:
        constrained()(*arrays, **symbols)
    called = constrained()
    for n in (5, 4, 3, 5):
        assert called(FIVE[:n], FIVE[:n], n=n, m=n)[0].tolist() == [2.0] * n
    for _ in range(3):
        with pytest.raises(CallError) as caught:
            called(*arrays, **symbols)
        assert (type(caught.value), str(caught.value)) == (type(first.value), str(first.value))
        assert (caught.value.pointers, caught.value.details) == (first.value.pointers, first.value.details)
    assert called(FIVE, FIVE, n=5, m=5)[0].tolist() == [2.0] * 5


def test_integers_of_numpy_are_bindings_too() -> None:
    called = constrained()
    sizes: list[Any] = [5, np.int64(4), np.uint8(3), 4, np.int32(5)]
    for n in sizes:
        other: Any = np.int64(n)
        assert called(FIVE[:n], FIVE[:n], n=n, m=other)[0].tolist() == [2.0] * int(n)


def test_an_array_that_is_bound_fixes_its_sizes() -> None:
    n, m = symbol("n"), symbol("m")
    sketch = Sketch(symbols={"n": (1, 100), "m": (1, 100)})
    sketch.elementwise(
        ADD, "add", [sketch.buffer([n], "input"), sketch.buffer([m], "input"), sketch.buffer([n], "output")]
    )
    bound = sketch.program().bind({101: np.full(5, 7, np.float32)})
    for size in (5, 3, 4, 1, 5, 2):
        assert bound(FIVE[:size], n=size, m=5)[0].tolist() == [8.0] * size
        with pytest.raises(CallError, match=r"input 1 \(var 101\) has the shape \(5,\), but the program takes \(6,\)"):
            bound(FIVE[:size], n=size, m=6)


@pytest.mark.parametrize("most", [100, 1 << 31, (1 << 63) - 1])
def test_large_bounds_of_a_symbol_are_no_hindrance(most: int) -> None:
    b = Builder("wide")
    n = b.symbol("n", 1, most)
    x = b.input("float32", (n, 3))
    b.output(softmax(x.transpose() @ x), x + 1)
    called = program(compiled(b.graph()))
    with mock.patch.object(Plans, "make", autospec=True, side_effect=Plans[Any].make) as plans:
        for size in range(1, 30):
            x_array = np.ascontiguousarray(KEYS[:size, :3])
            np.testing.assert_array_equal(called(x_array, n=size)[1], x_array + 1)
    assert plans.call_count <= 2
