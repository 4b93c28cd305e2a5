"""Graphs whose windows have no elements at some sizes, and what to call them with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorkiln.build import Builder, Tensor, flatten, flip, softmax, view
from tensorkiln.expr import Expr, evaluate
from tensorkiln.graph import Graph

SIZES = (0, 3, 0, 1)
"""The values of `n` that a program is called with, one after the other."""


@dataclass(frozen=True)
class EmptyCase:
    """`outputs` makes those of a graph whose symbol `n` is at most `most`."""

    name: str
    outputs: Callable[[Builder, Expr], tuple[Tensor, ...]]
    most: int = 8

    @property
    def sizes(self) -> tuple[int, ...]:
        """The values of `n` to call it with."""
        return tuple(size for size in SIZES if size <= self.most)

    def graph(self) -> Graph:
        """The graph."""
        builder = Builder(self.name)
        builder.output(*self.outputs(builder, builder.symbol("n", 0, self.most)))
        return builder.graph()


def arrays_of(graph: Graph, n: int) -> list[np.ndarray[Any, Any]]:
    """An array for each input of the graph, with elements that differ."""
    kinds = [graph.types[var] for var in graph.input_vars]
    shapes = [tuple(evaluate(dim, {"n": n}) for dim in kind.shape) for kind in kinds]
    return [
        np.arange(np.prod(shape)).reshape(shape).astype(kind.dtype.numpy)
        for kind, shape in zip(kinds, shapes, strict=True)
    ]


def _behind_the_first(b: Builder, n: Expr) -> tuple[Tensor, ...]:
    return (view(b.input("int16", (2 * n,)), [n], [1], 1),)


def _from_the_last_of_the_half(b: Builder, n: Expr) -> tuple[Tensor, ...]:
    return (view(b.input("float32", (2 * n,)), [n], [1], n - 1),)


def _of_a_result(b: Builder, n: Expr) -> tuple[Tensor, ...]:
    rows = softmax(b.input("float32", (n, 4)))
    return view(rows, [n], [1], n - 1), rows


def _of_a_temporary(b: Builder, n: Expr) -> tuple[Tensor, ...]:
    rows = softmax(b.input("float32", (n, 4)))
    return view(rows, [n], [1], n - 1), view(rows, [n], [1], 1)


def _summed(b: Builder, n: Expr) -> tuple[Tensor, ...]:
    window = view(b.input("float32", (2 * n,)), [n], [1], 1)
    return window, window.sum()


def _flipped(b: Builder, n: Expr) -> tuple[Tensor, ...]:
    return (flatten(flip(b.input("float32", (4, n, 2)), 1)),)


CASES = (
    EmptyCase("behind_the_first", _behind_the_first),
    EmptyCase("from_the_last_of_the_half", _from_the_last_of_the_half),
    EmptyCase("of_a_result", _of_a_result),
    EmptyCase("of_a_temporary", _of_a_temporary),
    EmptyCase("summed", _summed),
    EmptyCase("flipped", _flipped),
    EmptyCase("flipped_and_always_empty", _flipped, most=0),
)
