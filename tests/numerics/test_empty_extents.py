"""Values without elements, by their shape or by what a symbol is bound to, moved and then read: against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, cat, flip, gather, pad, shrink
from tensorkiln.expr import Dim, product
from tensorkiln.expr import evaluate as value_of
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked, emulated
from tests.numerics.cases.turns import EXAMPLES

Move = Callable[[Tensor], Tensor]
Ready = Callable[[Graph], Callable[..., tuple[Any, ...]]]
"""What compiles a graph, to be called any number of times."""
READY: dict[str, Ready] = {"cpu": checked.ready, "gpu": emulated.ready}
"""By turns, or with KILN_EXAMPLES both; what a symbol makes empty is always tried on both."""


def _padded_and_cut(x: Tensor) -> Tensor:
    padded = pad(x, [(2, 1)] * len(x.shape))
    return flip(shrink(padded, [(2, extent + 2) for extent in x.shape]))


MOVES: dict[str, Move] = {
    "flipped": flip,
    "flipped along the first": lambda x: flip(x, 0),
    "flipped along the last": lambda x: flip(x, -1),
    "flipped and turned": lambda x: flip(x).permute(*reversed(range(len(x.shape)))),
    "padded and cut": _padded_and_cut,
    "nothing of it": lambda x: flip(shrink(x, [(0, 0) for _ in x.shape])),
    "joined to itself": lambda x: flip(cat([flip(x), x], 0)),
    "all again in front": lambda x: flip(x.reshape(1, *x.shape).expand(2, *x.shape)),
}


def read(x: Tensor) -> tuple[Tensor, ...]:
    """What has elements though `x` has none, and what has none either."""
    positions = x.builder.input("int32", (2,))
    along = positions.reshape(2, *(1 for _ in x.shape[1:])).expand(2, *x.shape[1:])
    return (
        x.sum(),
        x.sum(axis=0),
        x.sum(axis=-1) * 2.0 + 1.0,
        x.max(axis=0, keepdims=True),
        gather(x, along, 0),
        gather(x.reshape(product(x.shape)), positions, 0),
        pad(x, [(1, 2)] * len(x.shape)),
        -x,
    )


def check(ready: Ready, shape: tuple[Dim | str, ...], move: Move, sizes: list[int]) -> None:
    b = Builder("empty")
    for name in {extent for extent in shape if isinstance(extent, str)}:
        b.symbol(name, 0, 9)
    x = b.input("float32", shape)
    b.output(*read(move(x)))
    graph = b.graph()
    run = ready(graph)
    for size in sizes:
        symbols = dict.fromkeys(graph.symbols, size)
        extents = tuple(value_of(extent, symbols) for extent in x.shape)
        values = np.arange(np.prod(extents), dtype=np.float32).reshape(extents)
        arrays = values, np.array([-1, 1], np.int32)
        for actual, expected in zip(run(*arrays, **symbols), evaluate(graph, *arrays, **symbols), strict=True):
            np.testing.assert_array_equal(actual, expected, strict=True)


@pytest.mark.parametrize(
    ("shape", "move", "machine"),
    [
        (shape, move, machine)
        for place, shape in enumerate([(0,), (3, 0), (0, 3), (2, 0, 3)])
        for turn, move in enumerate(MOVES)
        for machine in (READY if EXAMPLES > 1 else [[*READY][(place + turn) % 2]])
    ],
    ids=str,
)
def test_an_extent_of_zero(shape: tuple[int, ...], move: str, machine: str) -> None:
    check(READY[machine], shape, MOVES[move], [0])


@pytest.mark.parametrize("machine", READY)
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("shape", [(3, "n"), ("n", 3)], ids=str)
def test_a_symbol_that_is_zero(machine: str, shape: tuple[int | str, ...], move: str) -> None:
    check(READY[machine], shape, MOVES[move], [0, 3])
