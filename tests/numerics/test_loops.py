"""Loops that data ends: the reference, code for this machine in guarded memory, and a GPU that is emulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tensorkiln import build
from tensorkiln.build import Builder, Tensor, while_loop
from tensorkiln.errors import CallTurnsError, TensorkilnError
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, program
from tests.runtime.cuda.test_compiled import codes
from tests.simt.driver import EmulatedDriver

Call = tuple[Sequence[Any], dict[str, int]]
X = np.linspace(1, 9, 8, dtype=np.float32)
MOST = 6


def newton(b: Builder) -> None:
    """Square roots, as good as a tolerance asks for."""
    x, tolerance = b.input("float32", (b.symbol("n", 1, 64),)), b.input("float32")

    def is_far(root: Tensor, x: Tensor, tolerance: Tensor) -> Tensor:
        return tolerance < abs(root * root - x).max()

    (root,) = while_loop(is_far, lambda root, x, _: (root + x / root) * 0.5, [x], [x, tolerance], most=40)
    b.output(root, -root)


def decoder(b: Builder) -> None:
    """The next token is the likeliest after the present one, until that is token 0 or the row is full."""
    table, first = b.input("float32", (7, 7)), b.input("int32")

    def goes_on(place: Tensor, token: Tensor, *_: Tensor) -> Tensor:
        return (place < 5) & (token != 0)

    def turn(place: Tensor, token: Tensor, tokens: Tensor, table: Tensor) -> list[Tensor]:
        likeliest = build.argmax(build.take(table, token.reshape([1]), 0), 1).reshape([]).cast("int32")
        is_here = build.equal(build.arange(place.builder, 5).cast("int32"), place)
        return [place + 1, likeliest, build.where(is_here, likeliest, tokens)]

    b.output(*while_loop(goes_on, turn, [b.constant(0), first, b.constant([-1] * 5, "int32")], [table]))


def exchanged(b: Builder) -> None:
    """Two values change places in every turn, one is carried twice, and inputs are results as they are."""
    n = b.symbol("n", 0, 64)
    x, y, turns = b.input("float32", (n,)), b.input("float32", (n,)), b.input("int32")

    def turn(i: Tensor, one: Tensor, other: Tensor, again: Tensor, flag: Tensor, turns: Tensor) -> list[Tensor]:
        return [i + 1, other, one, again + one, ~flag]

    zero, flag = b.constant(0), b.constant(True)
    b.output(
        *while_loop(lambda i, *values: i < values[-1], turn, [zero, x, y, x, flag], [turns], most=MOST),
        x,
    )


def nested(b: Builder) -> None:
    """The condition of the outer loop and its body are loops, which read what is carried around them."""
    x, limit = b.input("int32", (3,)), b.input("int32")

    def count(i: Tensor, x: Tensor, limit: Tensor) -> tuple[Tensor, ...]:
        def turn(j: Tensor, total: Tensor, i: Tensor, x: Tensor) -> list[Tensor]:
            return [j + 1, total + x * i]

        zeros = build.zeros(i.builder, (3,), "int32")
        return while_loop(lambda j, total, i, x: j < i, turn, [i.builder.constant(0), zeros], [i, x])

    def goes_on(i: Tensor, x: Tensor, limit: Tensor) -> Tensor:
        return count(i, x, limit)[1].sum() < limit

    b.output(*while_loop(goes_on, lambda i, x, limit: [i + 1, x + count(i, x, limit)[1]], [b.constant(0), x], [limit]))


def rows(n: int) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.float32)


LOOPS: dict[str, tuple[Callable[[Builder], None], list[Call]]] = {
    "newton": (newton, [([X[:n], np.float32(t)], {"n": n}) for n, t in ((8, 1e-3), (8, 1e-3), (3, 1e-5), (1, 10))]),
    "decoder": (
        decoder,
        [([np.roll(np.eye(7, dtype=np.float32), -1, 0), np.int32(token)], {}) for token in (5, 1, 0)],
    ),
    "exchanged": (
        exchanged,
        [([rows(n), -rows(n), np.int32(turns)], {"n": n}) for n, turns in ((5, 0), (5, 1), (5, 4), (0, 3), (9, 5))],
    ),
    "nested": (nested, [([np.array([1, 0, 2], np.int32), np.int32(limit)], {}) for limit in (0, 5, 4000)]),
}


def graph_of(write: Callable[[Builder], None]) -> Graph:
    b = Builder("loop")
    write(b)
    return b.graph()


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_computes_what_the_reference_does(name: str) -> None:
    write, calls = LOOPS[name]
    graph = graph_of(write)
    host = compiled(graph)
    here = program(host)
    device = compiled(graph, "cuda:sm_80", texts=["translate"])
    there = Program(device.program, device.artifacts.__getitem__, device=EmulatedDriver(codes(device)))
    for arrays, symbols in calls:
        expected = evaluate(graph, *arrays, **symbols)
        for found in (
            checked.run(host, *arrays, threads=2, **symbols),
            here(*arrays, **symbols),
            [np.asarray(each) for each in there(*arrays, **symbols)],
        ):
            for one, other in zip(found, expected, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    arrays, symbols = calls[0]
    loops = [item for item in here.profile(*arrays, **symbols) if item.op == "loop"]
    assert [item.op for item in there.profile(*arrays, **symbols) if item.op == "loop"] == [each.op for each in loops]
    assert loops
    assert there.planned_peak_bytes(**symbols) <= there.measured_peak_bytes
    if name == "exchanged":
        _fails_beyond_its_turns(graph, here, there)


def _fails_beyond_its_turns(graph: Graph, here: Program, there: Program) -> None:
    """An error of the call and no results; the next call is as good as any."""
    arrays = [rows(5), -rows(5)]
    for call in (lambda *given, **symbols: evaluate(graph, *given, **symbols), here, there):
        with pytest.raises(CallTurnsError) as caught:
            call(*arrays, np.int32(MOST + 1), n=5)
        assert caught.value.details == {"most": MOST}
        results = call(*arrays, np.int32(MOST), n=5)
        assert int(np.asarray(results[0])) == MOST
        np.testing.assert_array_equal(np.asarray(results[1]), arrays[0])


def test_conditions_inside_a_loop_are_conditions_on_the_call() -> None:
    b = Builder("halves")
    n = b.symbol("n", 0, 20)
    x, turns = b.input("float32", (n,)), b.input("int32")

    def body(turn: Tensor, x: Tensor, turns: Tensor) -> list[Tensor]:
        return [turn + 1, (x.reshape([2, n // 2]) * 2).reshape([n])]

    b.output(*while_loop(lambda turn, x, turns: turn < turns, body, [b.constant(0), x], [turns]))
    graph = b.graph()
    halves = program(compiled(graph))
    for size in (0, 4):
        array = np.arange(size, dtype=np.float32)
        for found, expected in zip(
            halves(array, np.int32(3), n=size), evaluate(graph, array, np.int32(3), n=size), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(TensorkilnError):
        halves(np.arange(5, dtype=np.float32), np.int32(3), n=5)
