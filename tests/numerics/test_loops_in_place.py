"""Values that a loop updates in place: the reference, code for this machine in guarded memory, and an emulated GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tensorkiln import build
from tensorkiln.build import Builder, Tensor, while_loop
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tensorkiln.reference import evaluate
from tensorkiln.spec import CompiledProgram
from tests import checked
from tests.compiled import program, shared
from tests.runtime.cuda.test_compiled import codes
from tests.simt.driver import EmulatedDriver

Array = np.ndarray[Any, Any]
Call = tuple[Sequence[Any], dict[str, int]]
WIDE = 20


def put(into: Tensor, place: Tensor, row: Tensor, reduction: str = "none") -> Tensor:
    """The rows `into` with `row` at a position, or combined with the one there; unchanged outside."""
    index = place.reshape([1, 1]).expand([1, into.shape[1]])
    return build.scatter(index, row.reshape([1, into.shape[1]]), 0, into=into, reduction=reduction)


def at(rows: Tensor, place: Tensor) -> Tensor:
    index = place.reshape([1, 1]).expand([1, rows.shape[1]])
    return build.gather(rows, index, 0)


def below(i: Tensor, *values: Tensor) -> Tensor:
    """Whether the turn is below the last of the values."""
    return i < values[-1]


def begin(b: Builder) -> tuple[Tensor, Tensor, Tensor]:
    """The number of a turn, the rows that are updated, and the number of turns."""
    return b.constant(0), b.input("float32", (b.symbol("n", 0, 64), WIDE)), b.input("int32")


def stacked(b: Builder) -> None:
    """A state that every turn changes, and a row for each of them: the last turns write outside."""
    zero, rows, turns = begin(b)
    state = b.input("float32", (WIDE,))

    def turn(i: Tensor, rows: Tensor, state: Tensor, _: Tensor) -> list[Tensor]:
        return [i + 1, put(rows, i, state), state * 0.5 + 1.0]

    b.output(*while_loop(below, turn, [zero, rows, state], [turns]))


def recurrent(b: Builder) -> None:
    """A row follows from the row before it."""
    zero, rows, turns = begin(b)
    b.output(*while_loop(below, lambda i, rows, _: [i + 1, put(rows, i, at(rows, i - 1) + 1.0)], [zero, rows], [turns]))


def read_behind(b: Builder) -> None:
    """What the rows were before the update is needed after it, too."""
    zero, rows, turns = begin(b)

    def turn(i: Tensor, rows: Tensor, total: Tensor, _: Tensor) -> list[Tensor]:
        after = put(rows, i, rows.sum(0))
        return [i + 1, after, total + (after * rows).sum(1).sum()]

    b.output(*while_loop(below, turn, [zero, rows, b.constant(0.0)], [turns]))


def updated_twice(b: Builder) -> None:
    """Two updates in a turn, of which the second one reads what the first one wrote, and one that combines."""
    zero, rows, turns = begin(b)

    def turn(i: Tensor, rows: Tensor, sums: Tensor, _: Tensor) -> list[Tensor]:
        once = put(rows, i, at(rows, i + 1) * 2.0)
        twice = put(once, i + 1, at(once, i) + at(rows, i + 2))
        return [i + 1, twice, put(sums, i * 0 + 1, at(twice, i), "add")]

    b.output(*while_loop(below, turn, [zero, rows, rows], [turns]))


def kept(b: Builder) -> None:
    """The loop reads its initial value all along, which is a result, and so is its last value, twice."""
    zero, rows, turns = begin(b)

    def turn(i: Tensor, first: Tensor, again: Tensor, rows: Tensor, _: Tensor) -> list[Tensor]:
        return [i + 1, put(first, i, at(rows, i) + at(again, i)), put(again, i, at(first, i) * 3.0)]

    _, first, again = while_loop(below, turn, [zero, rows, rows], [rows, turns])
    b.output(first, again, rows, first, first + again)


def exchanged(b: Builder) -> None:
    """Rows are updated, and change places with others."""
    zero, rows, turns = begin(b)

    def turn(i: Tensor, one: Tensor, other: Tensor, _: Tensor) -> list[Tensor]:
        return [i + 1, put(other, i, at(one, i)), one]

    b.output(*while_loop(below, turn, [zero, rows, rows * 2.0], [turns]))


def nested(b: Builder) -> None:
    """A loop inside of a loop updates what both of them carry, in the one after an update by the other."""
    zero, rows, turns = begin(b)

    def outer(i: Tensor, rows: Tensor, turns: Tensor) -> list[Tensor]:
        def inner(j: Tensor, rows: Tensor, i: Tensor, _: Tensor) -> list[Tensor]:
            return [j + 1, put(rows, j, at(rows, i) + at(rows, j))]

        def goes_on(j: Tensor, rows: Tensor, i: Tensor, _: Tensor) -> Tensor:
            return j < i

        begun = put(rows, i, at(rows, i) * 0.5)
        return [i + 1, while_loop(goes_on, inner, [i.builder.constant(0), begun], [i, turns])[1]]

    b.output(*while_loop(below, outer, [zero, rows], [turns]))


def changed_afterwards(b: Builder) -> None:
    """The rows are updated, and then all of them change."""
    zero, rows, turns = begin(b)
    b.output(*while_loop(below, lambda i, rows, _: [i + 1, put(rows, i, at(rows, i)) * 2.0], [zero, rows], [turns]))


def flipped_afterwards(b: Builder) -> None:
    """The rows are updated in place, and the result is elsewhere."""
    zero, rows, turns = begin(b)

    def turn(i: Tensor, rows: Tensor, _: Tensor) -> list[Tensor]:
        return [i + 1, build.flip(put(rows, i, at(rows, i) + 1.0), 0)]

    b.output(*while_loop(below, turn, [zero, rows], [turns]))


def of_bools(b: Builder) -> None:
    zero, n, turns = b.constant(0), b.symbol("n", 0, 64), b.input("int32")
    flags = b.input("bool", (n, WIDE))
    b.output(*while_loop(below, lambda i, flags, _: [i + 1, put(flags, i, ~at(flags, i + 1))], [zero, flags], [turns]))


LOOPS: dict[str, tuple[Callable[[Builder], None], int]] = {
    "stacked": (stacked, 1),
    "recurrent": (recurrent, 1),
    "read_behind": (read_behind, 0),
    "updated_twice": (updated_twice, 1),
    "kept": (kept, 2),
    "exchanged": (exchanged, 0),
    "nested": (nested, 2),
    "changed_afterwards": (changed_afterwards, 1),
    "flipped_afterwards": (flipped_afterwards, 0),
    "of_bools": (of_bools, 0),
}
"""Graphs, and how many values of several rows their bodies replace in place."""
SIZES = ((5, 3), (5, 4), (5, 8), (1, 1), (3, 0), (0, 2))
"""Rows and turns."""


GPU = "cuda:sm_80"
TEXTS: dict[str, list[str]] = {"cpu:native": [], GPU: ["translate"]}
"""The targets, and the texts of stages that a call needs."""


def graph_of(write: Callable[[Builder], None]) -> Graph:
    b = Builder("loop")
    write(b)
    return b.graph()


def calls(graph: Graph) -> list[Call]:
    draw = np.random.default_rng(5)
    found: list[Call] = []
    for rows, turns in SIZES:
        arrays: list[Any] = []
        for var in graph.input_vars:
            shape = tuple(rows if not isinstance(dim, int) else dim for dim in graph.types[var].shape)
            dtype = graph.types[var].dtype
            values = np.int32(turns) if not shape else draw.integers(-3, 4, shape).astype(dtype.numpy)
            arrays.append(values)
        found.append((arrays, {"n": rows}))
    return found


@pytest.mark.parametrize("name", LOOPS)
def test_a_value_updated_in_place_is_the_references(name: str) -> None:
    write, _ = LOOPS[name]
    graph = graph_of(write)
    host = shared(graph)
    here = program(host)
    device = shared(graph, GPU, texts=TEXTS[GPU])
    there = Program(device.program, device.artifacts.__getitem__, device=EmulatedDriver(codes(device)))
    for arrays, symbols in calls(graph):
        before = [np.array(array) for array in arrays]
        expected = evaluate(graph, *arrays, **symbols)
        for found in (
            checked.run(host, *arrays, threads=2, **symbols),
            here(*arrays, **symbols),
            here(*arrays, **symbols),
            [np.asarray(each) for each in there(*arrays, **symbols)],
        ):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
        for array, kept_array in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, kept_array)


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("target", TEXTS)
def test_the_body_replaces_carried_values_in_place(name: str, target: str) -> None:
    write, wanted = LOOPS[name]

    def in_place(made: CompiledProgram) -> int:
        own = (made.buffers[made.inputs[place].buffer] for place in made.in_place)
        return sum(len(buffer.shape) == 2 for buffer in own) + sum(map(in_place, made.inner))

    assert in_place(shared(graph_of(write), target, texts=TEXTS[target]).program) == wanted


def test_a_loop_has_no_second_copy_of_what_it_updates_in_place() -> None:
    graph = graph_of(recurrent)
    here = program(shared(graph))
    size = 64 * WIDE * 4
    assert here.planned_peak_bytes(n=64) < 2 * size
