"""Turns of loops on the host: in machine code with loops inside, on several threads, and in Python around callbacks."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln import build
from tensorkiln.build import Builder, Tensor, while_loop
from tensorkiln.errors import CallTurnsError
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, program

Turn = Callable[..., list[Tensor]]


def counted(turn: Turn, shape: tuple[int, ...], *, most: int = 1 << 20) -> Graph:
    """`turn` as often as the second input says, on the first one."""
    b = Builder("counted")
    x, turns = b.input("float32", shape), b.input("int32")
    b.output(*while_loop(lambda i, x, turns: i < turns, turn, [b.constant(0), x], [turns], most=most))
    return b.graph()


def sorted_rows(x: Tensor) -> Tensor:
    axis = {"name": "axis", "kind": "int", "value": 0}
    return x.builder.append("custom", x.dtype, x.shape, op_name="sort", in_vars=[x.var], attributes=[axis])


def inner(i: Tensor, x: Tensor, turns: Tensor) -> list[Tensor]:
    """A loop of as many turns, 5 at most, in each turn."""
    zero = i.builder.constant(0)
    found = while_loop(lambda j, y, end: j < end, lambda j, y, _: [j + 1, y + 1.0], [zero, x], [turns], most=5)
    return [i + 1, found[1] * 2.0]


def same_as_reference(graph: Graph, *arrays: Any) -> None:
    expected = evaluate(graph, *arrays)
    made = compiled(graph)
    calls = program(made), program(made, 2)
    for found in (*(call(*arrays) for call in calls for _ in range(2)), checked.run(made, *arrays, threads=2)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-4, 1e-4)


@pytest.mark.parametrize("turns", [0, 1, 2, 600])
def test_turns_beyond_one_call_of_the_machine_code_go_on(turns: int) -> None:
    same_as_reference(counted(lambda i, x, _: [i + 1, x * 0.5 + 1.0], (8,)), np.zeros(8, np.float32), np.int32(turns))


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_callback_in_a_loop_runs_in_python(turns: int) -> None:
    graph = counted(lambda i, x, _: [i + 1, sorted_rows(-x) + 1.0], (8,))
    same_as_reference(graph, np.arange(8, dtype=np.float32), np.int32(turns))


def test_a_callback_in_a_loop_inside_a_loop_runs_in_python() -> None:
    def turn(i: Tensor, x: Tensor, turns: Tensor) -> list[Tensor]:
        zero = i.builder.constant(0)
        found = while_loop(lambda j, y, end: j < end, lambda j, y, _: [j + 1, sorted_rows(-y)], [zero, x], [turns])
        return [i + 1, found[1] + 1.0]

    same_as_reference(counted(turn, (8,)), np.arange(8, dtype=np.float32), np.int32(3))


def test_kernels_of_turns_are_shared_by_threads() -> None:
    graph = counted(lambda i, x, _: [i + 1, build.tanh(x @ x * 0.01)], (512, 512))
    x = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
    made = compiled(graph)
    alone, shared = (program(made, threads)(x, np.int32(5)) for threads in (1, 2))
    for one, other in zip(alone, shared, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_error_of_a_loop_inside_a_loop_has_its_most_turns() -> None:
    graph = counted(inner, (4,), most=9)
    call = program(compiled(graph))
    x = np.arange(4, dtype=np.float32)
    with pytest.raises(CallTurnsError) as caught:
        call(x, np.int32(6))
    assert caught.value.details == {"most": 5}
    same_as_reference(graph, x, np.int32(5))


def test_a_signal_ends_a_loop_without_end() -> None:
    class StopError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StopError

    call = program(compiled(counted(lambda i, x, _: [i * 1, x + 1.0], (8,), most=2**31 - 1)))
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(StopError):
            call(np.zeros(8, np.float32), np.int32(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(call(np.ones(8, np.float32), np.int32(0))[1], np.ones(8))
